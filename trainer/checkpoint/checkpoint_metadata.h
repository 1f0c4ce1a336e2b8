#ifndef ELASTOR_TRAINER_CHECKPOINT_CHECKPOINT_METADATA_H_
#define ELASTOR_TRAINER_CHECKPOINT_CHECKPOINT_METADATA_H_

#include <optional>
#include <string>

#include "configs/proto/control.pb.h"
#include "core/kernels/small_rows.h"
#include "trainer/data/encoding.h"

namespace elastor {

// Contents of a folder: a model's weights (RUN/model, the best weights), or a whole training state
// (RUN/checkpoints/step-SSSSSSSSSS).
enum class Contents { kWeights, kState };

// The full checkpoint that a delta completes.
struct CheckpointBase {
  std::string name;           // name of its folder, which lies beside the delta's
  std::string manifest_xxh3;  // hash at its manifest's end, which no other folder has
};

// The place of a folder in a chain of publications (publication.h).
struct Publication {
  int64_t number = 0;   // counts from 1 in the folder of publications
  bool delta = false;   // whether its tables have only the rows that changed since number - 1
  std::string run;      // hash of all that decides the bits of the run that published it
  std::string origin;   // `result` of the first one in the folder
  std::string follows;  // `result` of number - 1; empty: this is the first
  std::string result;   // hash of follows, number, run, step and the weights' digest
  RowFormat rows = RowFormat::kFloat32;  // how the weights of embedding rows are stored
};

struct CheckpointMetadata {
  Contents contents = Contents::kWeights;
  ControlRecord control;     // step, epoch, position, ...
  std::string state_digest;  // of weights, slots and control. kState: filled in by the writer;
                             // kWeights: the caller's, of the state that the weights are part of;
                             // of a publication, the digest of the weights alone
  std::string build;         // BuildName of the trainer; empty: an earlier one did not tell it
  std::string numerics;      // fingerprint of the build that trained
  std::string model_hash;    // MakeModelHash
  std::string numeric_hash;  // NumericHash of the experiment
  std::string experiment;    // resolved, text format
  std::string data;          // Dataset::fingerprint() of the training data
  // Encoding of the training data; none: a folder of version 1 does not record it.
  std::optional<DataEncoding> encoding = {};
  bool has_vocabularies = false;  // the folder holds the vocabularies of `encoding`; by the writer
  // The base of a delta, whose tables have only the rows that changed since. Filled in by the
  // writer.
  std::optional<CheckpointBase> base = {};
  std::optional<Publication> publication = {};  // contents are then kWeights
  std::string manifest_xxh3 = {};  // hash of this folder's manifest; after writing, on rank 0 alone
};

// Returns how the weights of embedding rows are stored.
inline RowFormat RowFormatOf(const CheckpointMetadata& metadata) {
  return metadata.publication ? metadata.publication->rows : RowFormat::kFloat32;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_CHECKPOINT_METADATA_H_
