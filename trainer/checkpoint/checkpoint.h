#ifndef ELASTOR_TRAINER_CHECKPOINT_CHECKPOINT_H_
#define ELASTOR_TRAINER_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/checkpoint/state_digest.h"
#include "trainer/checkpoint/state_view.h"
#include "trainer/data/dataset.h"

namespace elastor {

// A model's weights or a whole training state in a folder of files, readable on any number of ranks
// and under any plan:
//   manifest.json      CheckpointMetadata; of every file below its size and XXH3-64 of its header
//   and,
//                      piece by piece, of its data, with the partitions and rows of every piece;
//                      its own hash
//   dense.safetensors  one F32 tensor per parameter, by name, in its shape; a training state's
//                      slots beside it as '<name>/m', '<name>/v' (Adam) or '<name>/a' (Adagrad)
//   embedding-RRRRR-of-NNNNN.safetensors, one per rank that wrote: for every table '<table>/keys'
//                      I64 [n], '<table>/rows' F32 [n, width] and '<table>/m', '/v' or '/a', rows
//                      in order of (partition, key)
//   vocabulary/FIELD.tsv  the training data's vocabularies, in a model that a run ends with; their
//                      hashes are in the manifest's `encoding`
// Every row is in one file. Rows that never occurred in training are in none: they are made from
// the seed, as in training.
//
// A training state may also be a delta: its tables have only the rows that changed since the last
// full one, its base, which lies beside it and which its manifest (version 3) names. The state is
// the base with these rows in place, and all else, the digest of the whole state too, as the
// delta's own files say. So a state is one full folder and one delta, whatever deltas there were
// between. Every reader below takes the folder of a delta as it takes a full one.

// All that a model's predictions depend on besides its weights: model, embedding, training.seed and
// the chosen labels of the experiment, and the data's fields and labels.
struct ModelIdentity {
  const Experiment& experiment;
  const DatasetInfo& data;
};
// XXH3-64 of it, as 16 hex digits.
std::string MakeModelHash(const ModelIdentity& model);
// Whether the folder that `manifest_path` stands in is of this model, by metadata.experiment, which
// may be of the first format, and metadata.model_hash, which was made from it as it stands; and was
// trained on data encoded as model.data (CheckEncoding). User error naming what differs.
Status CheckModel(const std::string& manifest_path, const CheckpointMetadata& metadata,
                  const ModelIdentity& model);

// Whether the folder's model learned the labels that this one learns. User error with both.
Status CheckLabels(const std::string& manifest_path, const CheckpointMetadata& metadata,
                   const ModelIdentity& model);

// Whether the model's data is encoded as the training data was, as far as the folder tells. User
// error naming the first field that differs, with both values.
Status CheckEncoding(const std::string& manifest_path, const CheckpointMetadata& metadata,
                     const ModelIdentity& model);
// Says so, on rank 0, when the folder does not tell.
void WarnOfUnknownEncoding(const std::string& manifest_path, const CheckpointMetadata& metadata,
                           const Communicator& communicator);

// Writes checkpoints one at a time while training goes on: Start copies this rank's share of the
// state and returns; files are written, hashed and synced by a thread of its own in `path`.partial,
// on storage that all ranks share; Finish gives it its name when every rank has succeeded: `path`
// is whole or not there. Not thread-safe.
class CheckpointWriter {
 public:
  // staging_bytes: what a rank may copy, in memory that is kept for the next checkpoint; when a
  // rank's share is larger, all wait in Start until it is written. state's objects and communicator
  // outlive the writer.
  CheckpointWriter(const StateView& state, int64_t staging_bytes, Communicator* communicator);
  ~CheckpointWriter();  // waits for the thread; what was not finished is removed

  // Collective. REQUIRES: not active(). All ranks return the same status; on error nothing is
  // active. An existing `path` is replaced when Finish publishes. vocabularies_from: the folder of
  // the prepared set whose vocabulary files come along; empty: none do. Of a whole state: where
  // state's tables note touched rows, these count from now on.
  Status Start(const std::string& path, const CheckpointMetadata& metadata,
               const std::string& vocabularies_from = "");
  // The same for a whole state in as few bytes as do: a delta of the last full state that this
  // writer made or goes on from. A full one where there is none in path's directory, the tables do
  // not note touched rows, or these are more than kMostDelta of all rows' bytes. Finish's metadata
  // tells which. REQUIRES: nothing was loaded since that full state but what ContinueFrom was told.
  static constexpr double kMostDelta = 0.5;
  Status StartDelta(const std::string& path, const CheckpointMetadata& metadata);
  // This rank only. The state is what LoadCheckpoint has just read from `path`, with this metadata:
  // deltas may go on from it or from its base.
  void ContinueFrom(const std::string& path, const CheckpointMetadata& metadata);
  bool active() const;
  // Whether this rank's files are written, or have failed: Finish does not wait for this rank.
  bool done() const;
  // Collective. REQUIRES: active(). Waits for every rank (ranks meet every second meanwhile, so
  // that no deadline counts), publishes, and returns the metadata with the digest. On error (disk
  // full, ...), the same on all ranks: nothing was published, the partial folder is removed,
  // earlier checkpoints are untouched.
  StatusOr<CheckpointMetadata> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The manifest alone, checked against its own hash. This rank only. User error naming the file.
StatusOr<CheckpointMetadata> ReadCheckpointMetadata(const std::string& path);

// Collective; any number of ranks, any plan. Replaces the state: a rank reads and verifies the
// parts it owns. With contents kState the folder must hold a training state, whose digest is
// computed again from memory and must be the manifest's; with kWeights it may, and slots become
// those of a new run. The folder must be of this model (CheckModel). User error, the same on all
// ranks, naming file and tensor with what was found and expected; the state is then undefined.
StatusOr<CheckpointMetadata> LoadCheckpoint(const std::string& path, Contents contents,
                                            const ModelIdentity& model, const StateView& state,
                                            Communicator& communicator);

struct WarmStartReport {
  CheckpointMetadata metadata;     // of the folder
  std::vector<std::string> taken;  // parameters and tables
  std::vector<std::string> left;   // of the folder; selected, but without a place in the model
  std::vector<std::string> fresh;  // of the model; not in the folder or not selected
};
// Collective; for a new run's state. Takes what the folder and the model both have by name and
// shape (a table: by width; keys beyond the table are an error) when what they stand for is encoded
// alike in `data` and in the folder's: a table's ids, and for parameters the numbers of numeric
// fields. Without config.partial(), `left` must be empty. Every name of config.tensors() must begin
// a name of the folder. Slots are taken, as those of the same optimizers, with
// config.optimizer_state() and stay as they are without.
StatusOr<WarmStartReport> WarmStart(const WarmStartConfig& config, const DatasetInfo& data,
                                    const StateView& state, Communicator& communicator);

// Every byte of the folder, and of a delta's base, against the manifest, and the state digest of a
// whole state computed again from the files alone. Collective: files are shared among the ranks.
// Returns the metadata.
StatusOr<CheckpointMetadata> VerifyCheckpoint(const std::string& path, Communicator& communicator);

// The folder of the last whole checkpoint below `directory` (RUN/checkpoints), or "" when there is
// none. This rank only.
StatusOr<std::string> LastCheckpoint(const std::string& directory);
// "step-0000000100"
std::string CheckpointName(int64_t step);
// "best-0000000100": weights of the best evaluation, at that step.
std::string BestName(int64_t step);
// Removes all but the last `keep` checkpoints and the bases of deltas among these, then weights of
// best evaluations that neither the control record of one of those (unless one is damaged) nor
// `best_step` names, then what a killed run left (".partial",
// ".old" of folders that are there). One rank, while none writes below `directory`.
Status RemoveOldCheckpoints(const std::string& directory, int64_t keep, int64_t best_step);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_CHECKPOINT_H_
