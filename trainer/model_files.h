#ifndef ELASTOR_TRAINER_MODEL_FILES_H_
#define ELASTOR_TRAINER_MODEL_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/parameters/parameter_layout.h"
#include "embedding/sharded_embedding.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"

namespace elastor {

// The trained weights of a run in a folder of their own, readable on any number of ranks:
//   manifest.json      what the model is, and the size and XXH3-64 of every file below
//   dense.safetensors  one F32 tensor per parameter, by name, in its shape
//   embedding-RRRRR-of-NNNNN.safetensors, one per rank that wrote: for every table
//                      '<table>.keys' I64 [n], ascending, and '<table>.rows' F32 [n, width].
// Every row is in one file. Rows that never occurred in training are in none: they are made from
// the seed, as in training.

// What manifest.json says besides the files.
struct ModelFacts {
  int64_t step = 0;
  int64_t epochs = 0;
  std::string state_digest;  // of the run's last training state
  std::string numerics;      // fingerprint of the build that trained
  std::string model_hash;    // MakeModelHash
};

// XXH3-64, as 16 hex digits, of all that a model's predictions depend on besides its weights:
// model, embedding, training.seed, and the data's fields.
std::string MakeModelHash(const Experiment& experiment, const DatasetInfo& data);

// Where weights are, in one rank's memory; nothing is owned.
struct ModelWeights {
  const ParameterLayout* layout = nullptr;
  float* dense = nullptr;                          // layout's flat array, whole on every rank
  const std::vector<TableSpec>* tables = nullptr;  // those of `embedding`
  ShardedEmbedding<float>* embedding = nullptr;
};

// Collective. Writes `directory`.partial, on storage that all ranks share, and renames it when
// every rank has finished: `directory` is whole or not there. No second copy of the rows is made.
// All ranks return the same status.
Status SaveModel(const std::string& directory, const ModelFacts& facts, const ModelWeights& weights,
                 Communicator& communicator);

// Collective; any number of ranks. Every rank reads and verifies every file and keeps the rows it
// owns; their optimizer slots become 0. `model_hash` must be the model's. User error, the same on
// all ranks, naming file and tensor with what was found and expected; the weights are then
// undefined.
StatusOr<ModelFacts> LoadModel(const std::string& directory, const std::string& model_hash,
                               const ModelWeights& weights, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_MODEL_FILES_H_
