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

// A folder that holds a model's weights or a whole training state. It can be read on any number of
// ranks and under any plan. Its files:
//   manifest.json
//       CheckpointMetadata; the size of every file below, the XXH3-64 of its header and, piece by
//       piece, of its data, with the partitions and rows of every piece; its own hash
//   dense.safetensors
//       one F32 tensor per parameter, by name, in its shape; a training state's slots beside it as
//       '<name>/m', '<name>/v' (Adam) or '<name>/a' (Adagrad)
//   embedding-RRRRR-of-NNNNN.safetensors, one per rank that wrote
//       for every table '<table>/keys' I64 [n], '<table>/rows' F32 [n, width] and '<table>/m', '/v'
//       or '/a', rows in order of (partition, key)
//   vocabulary/FIELD.tsv
//       the training data's vocabularies, in a model that a run ends with; their hashes are in the
//       manifest's `encoding`
// Every row is in exactly one file. Rows that never occurred in training are in no file: they are
// made from the seed, as in training.
//
// A training state may also be a delta. Its tables then have only the rows that changed since the
// last full state, its base, which lies beside it and which its manifest (version 3) names. The
// state is the base's rows with these rows in place; everything else, also the digest of the whole
// state, is in the delta's own files. So a state is at most one full folder and one delta, however
// many deltas were written between. Every reader below takes a delta's folder like a full one.

// Everything that a model's predictions depend on besides its weights: the experiment's model,
// embedding, training.seed and chosen labels, and the data's fields and labels.
struct ModelIdentity {
  const Experiment& experiment;
  const DatasetInfo& data;
};
// Returns the XXH3-64 of a model's identity as 16 hex digits.
std::string MakeModelHash(const ModelIdentity& model);
// Checks that the folder of `manifest_path` was trained with this model's experiment. Compares
// metadata.experiment, which may be in the first format. User error naming what differs.
Status CheckModelExperiment(const std::string& manifest_path, const CheckpointMetadata& metadata,
                            const ModelIdentity& model);
// Checks that the folder of `manifest_path` holds this model. Compares metadata.model_hash, which
// was made from metadata.experiment as it stands. REQUIRES: CheckModelExperiment and CheckEncoding
// are ok. User error.
Status CheckModel(const std::string& manifest_path, const CheckpointMetadata& metadata,
                  const ModelIdentity& model);

// Checks that the folder's model learned the same labels as this one. User error with both lists.
Status CheckLabels(const std::string& manifest_path, const CheckpointMetadata& metadata,
                   const ModelIdentity& model);

// Checks that the model's data is encoded as the training data was, as far as the folder tells.
// User error naming the first field that differs, with both values.
Status CheckEncoding(const std::string& manifest_path, const CheckpointMetadata& metadata,
                     const ModelIdentity& model);
// Warns, on rank 0, when the folder does not record how its training data was encoded.
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

  // Starts a checkpoint. Collective. REQUIRES: not active(). All ranks return the same status; on
  // error nothing is active. An existing `path` is replaced when Finish publishes.
  // vocabularies_from: the prepared set whose vocabulary files are copied into the checkpoint;
  // empty: none are. After a whole state, the tables that note touched rows note them anew from
  // here.
  Status Start(const std::string& path, const CheckpointMetadata& metadata,
               const std::string& vocabularies_from = "");
  // Starts a whole state as a delta of the last full state that this writer made or goes on from.
  // Writes a full state instead when path's directory holds no such state, when the tables do not
  // note touched rows, or when these take more than kMostDelta of all rows' bytes. Finish's
  // metadata tells which. REQUIRES: nothing was loaded since that full state except what
  // ContinueFrom was told.
  static constexpr double kMostDelta = 0.5;
  Status StartDelta(const std::string& path, const CheckpointMetadata& metadata);
  // Tells the writer that LoadCheckpoint has just read the state from `path`, with this metadata,
  // so that deltas may go on from it or from its base. This rank only.
  void ContinueFrom(const std::string& path, const CheckpointMetadata& metadata);
  bool active() const;
  // Returns whether this rank's files are written or have failed, so that Finish does not wait for
  // it.
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

// Reads the manifest alone and checks it against its own hash. This rank only. User error naming
// the file.
StatusOr<CheckpointMetadata> ReadCheckpointMetadata(const std::string& path);

// Replaces the state; each rank reads and verifies the parts it owns. Collective; works for any
// number of ranks and any plan. With kState the folder must hold a training state; its digest is
// computed again from memory and must equal the manifest's. With kWeights the folder may hold a
// training state, and slots get the values of a new run. The folder must be of this model
// (CheckModel). User error, the same on all ranks, naming file and tensor with what was found and
// expected; the state is then undefined.
StatusOr<CheckpointMetadata> LoadCheckpoint(const std::string& path, Contents contents,
                                            const ModelIdentity& model, const StateView& state,
                                            Communicator& communicator);

struct WarmStartReport {
  CheckpointMetadata metadata;     // the folder's
  std::vector<std::string> taken;  // parameters and tables
  std::vector<std::string> left;   // selected from the folder, but without a place in the model
  std::vector<std::string> fresh;  // in the model, but not in the folder or not selected
};
// Copies weights of a folder into a new run's state. Collective. Takes each tensor that folder and
// model both have with the same name and shape (a table: the same width; keys beyond the table are
// an error). Their data must be encoded alike: a table's ids, and for parameters the numbers of
// numeric fields. Without config.partial(), `left` must be empty. Every name of config.tensors()
// must begin a name of the folder. With config.optimizer_state() slots are taken too, as those of
// the same optimizers; without it they stay as they are.
StatusOr<WarmStartReport> WarmStart(const WarmStartConfig& config, const DatasetInfo& data,
                                    const StateView& state, Communicator& communicator);

// Checks every byte of the folder, and of a delta's base, against the manifest. Computes the digest
// of a whole state again from the files alone. Collective: the ranks share the files. Returns the
// metadata.
StatusOr<CheckpointMetadata> VerifyCheckpoint(const std::string& path, Communicator& communicator);

// Returns the folder of the last whole checkpoint below `directory` (RUN/checkpoints), or "" when
// there is none. This rank only.
StatusOr<std::string> LastCheckpoint(const std::string& directory);
// "step-0000000100"
std::string CheckpointName(int64_t step);
// "best-0000000100": weights of the best evaluation, at that step.
std::string BestName(int64_t step);
// Removes all checkpoints except the last `keep` and the bases of deltas among these. Then removes
// the weights of best evaluations that neither the control record of a kept checkpoint nor
// `best_step` names (none of them if a kept checkpoint is damaged). Last, removes the leftovers of
// a killed run (".partial", and ".old" of folders that are there). Called on one rank, while no
// rank writes below `directory`.
Status RemoveOldCheckpoints(const std::string& directory, int64_t keep, int64_t best_step);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_CHECKPOINT_H_
