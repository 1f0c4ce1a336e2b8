#ifndef ELASTOR_TRAINER_CHECKPOINT_PUBLICATION_H_
#define ELASTOR_TRAINER_CHECKPOINT_PUBLICATION_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/checkpoint/state_view.h"

namespace elastor {

// Publications of a model in training, for scorers that follow it. They lie in one folder and are
// numbered from 1:
//   base-NNNNNNNNNN   a whole model: the weights of all rows, the dense parameters, vocabularies
//   delta-NNNNNNNNNN  the dense parameters, the rows that steps updated since number N - 1, and of
//                     keyed tables the keys whose rows number N - 1 has and that left since. Of
//                     shared rows (embedding/admission.h) it has those of all partitions with ids.
// Both have the format of a model (checkpoint.h) with a manifest of version 4, whose `publication`
// links them: `result` of a number is a hash that `follows` of the next one repeats. A number may
// have both, which then have the same result. The bytes do not depend on the ranks that wrote them.
// With small rows (core/kernels/small_rows.h) the version is 6, and the digest is of what is
// stored.

std::string PublishedBaseName(int64_t number);
std::string PublishedDeltaName(int64_t number);

// The whole publications in a folder, by number.
struct Published {
  std::set<int64_t> bases;
  std::set<int64_t> deltas;
  int64_t last() const;  // 0: none
};
// Looks for them. A folder that is not there has none. This rank only.
StatusOr<Published> FindPublished(const std::string& folder);
// Removes what a process that was killed has left in writing or removing publications. REQUIRES:
// nobody writes there. This rank only.
Status RemoveUnfinishedPublications(const std::string& folder);

// Returns the hash that identifies a publication and all before it.
std::string PublicationResult(const Publication& publication, int64_t step,
                              const std::string& weights_digest);

// Returns the digest of the dense parameters and of all rows' weights, without slots: the sum of
// the records dense/NAME and embedding/TABLE, whose rows are in `format`. Diverged if a weight does
// not fit the format. Collective; reads all rows.
StatusOr<std::string> WeightsDigest(const StateView& state, RowFormat format,
                                    Communicator& communicator);

// Writes publications one at a time while training goes on. Start copies rows and parameters to
// rank 0, a thread of which then writes and gives the folders their names. Not thread-safe.
class PublicationWriter {
 public:
  // state's objects and communicator outlive the writer.
  PublicationWriter(const StateView& state, Communicator* communicator);
  ~PublicationWriter();  // waits for the thread

  struct Parts {
    bool base = false;
    bool delta = false;  // REQUIRES: state.embedding->unpublished() is not null
  };
  // Publishes the state as it is now in `folder`. metadata.publication has all but `delta` and
  // `result`, and origin if it follows nothing; metadata.state_digest is WeightsDigest's.
  // vocabularies_from: the prepared set whose files a base gets; empty: none. keep_bases: number of
  // bases that stay; deltas that the oldest of them contains go. From now on rows are unpublished
  // when they change again. Collective. REQUIRES: not active().
  Status Start(const std::string& folder, const CheckpointMetadata& metadata, const Parts& parts,
               const std::string& vocabularies_from, int64_t keep_bases);
  bool active() const;
  // Returns whether Finish would not wait for this rank. REQUIRES: active().
  bool done() const;
  // Waits for the thread on rank 0; ranks meet every second meanwhile. Returns its status on all
  // ranks. Collective. REQUIRES: active().
  Status Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_PUBLICATION_H_
