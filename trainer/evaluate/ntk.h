#ifndef ELASTOR_TRAINER_EVALUATE_NTK_H_
#define ELASTOR_TRAINER_EVALUATE_NTK_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/ntk/kernel_tile.h"
#include "core/ntk/ntk_memory.h"
#include "embedding/sharded_embedding.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"
#include "trainer/evaluate/ntk_record.h"

namespace elastor {

// The model whose kernel is measured. Everything outlives the call.
struct NtkModel {
  const Graph* graph = nullptr;
  const float* weights = nullptr;  // the flat array of the graph's parameters
  std::span<const FieldSpec> fields;
  ShardedEmbedding<float>* embedding = nullptr;
  int64_t leaves = 1;
  int64_t most_eigenvalues = kMaxNtkEigenvalues;  // Lanczos' method beyond so many rows
};

struct NtkMeasurement {
  int64_t rows = 0;        // measured
  int64_t duplicates = 0;  // rows left out because an earlier one has the same features
  std::vector<NtkRecord>
      records;  // on rank 0: the layers in the model's order, "embedding", "whole"
};

// The empirical neural tangent kernel of the model's logit, K_ij = <df(x_i)/d(theta),
// df(x_j)/d(theta)>, by layer and whole, on the first `rows` different rows of a split, or as many
// as there are; of several outputs the mean of the kernels of NtkOutputs. In double, of weights in
// float; the same bits on any number of ranks and threads. Of more than most_eigenvalues rows
// only the whole, by stochastic Lanczos quadrature (Ubaru, Chen & Saad 2017) without the kernel:
// two random vectors, 32 steps each, good to rounding on another number of ranks. kernel (may be
// empty): called on rank 0 with every layer's [rows, rows]. User error where the model's rows
// depend on each other. Collective.
using NtkKernelVisit =
    std::function<Status(const std::string& layer, int64_t rows, std::span<const double> kernel)>;
StatusOr<NtkMeasurement> MeasureNtk(const NtkModel& model, const Dataset& dataset, Split split,
                                    int64_t rows, const NtkKernelVisit& kernel,
                                    Communicator* communicator, ThreadPool* pool);

// The gradients of the tables' rows that a batch's rows use, of `width` numbers each, from those of
// the pooled features, deltas [rows][fields * width].
NtkTableGradients TableGradients(const SparseBatch& sparse, std::span<const FieldSpec> fields,
                                 int64_t width, std::span<const double> deltas);

// Files of a measurement: ntk.jsonl, a line a record; ntk_spectrum.csv, all eigenvalues, and
// ntk_spectrum.svg, or by Lanczos' method ntk_density.csv; ntk_density.svg. `model`: its name, for
// the pictures.
Status WriteNtk(const std::string& directory, const std::string& model,
                const std::vector<NtkRecord>& records);
// For people, in columns.
std::string NtkText(const NtkMeasurement& measurement);
// One JSON object on one line, without the newline and the eigenvalues.
std::string ToJson(const NtkRecord& record);
// A matrix as a file of NumPy's format (.npy, version 1.0).
std::string NpyText(int64_t rows, std::span<const double> matrix);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_NTK_H_
