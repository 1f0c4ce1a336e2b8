#ifndef ELASTOR_TRAINER_EVALUATE_NTK_H_
#define ELASTOR_TRAINER_EVALUATE_NTK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/ntk/kernel_tile.h"
#include "core/ntk/ntk_memory.h"
#include "core/report/chart_table.h"
#include "embedding/sharded_embedding.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"
#include "trainer/records/ntk_record.h"

namespace elastor {

// The model whose kernel is measured. Everything outlives the call.
struct NtkModel {
  const Graph* graph = nullptr;
  const float* weights = nullptr;  // the flat array of the graph's parameters
  std::span<const FieldSpec> fields;
  ShardedEmbedding<float>* embedding = nullptr;
  int64_t leaves = 1;
  int64_t most_eigenvalues = kMaxNtkEigenvalues;  // with more rows, Lanczos' method is used
};

struct NtkMeasurement {
  int64_t rows = 0;        // number of measured rows
  int64_t duplicates = 0;  // rows left out because an earlier one has the same features
  std::vector<NtkRecord>
      records;  // on rank 0: the layers in the model's order, "embedding", "whole"
};

// Measures the empirical neural tangent kernel of the model's logit, K_ij = <df(x_i)/d(theta),
// df(x_j)/d(theta)>, for each layer and for the whole model. Takes the first `rows` different rows
// of a split in `order`, or as many as there are. With several outputs it takes the mean of the
// kernels of NtkOutputs. Computes in double from float weights; the bits are the same on any number
// of ranks and threads. With more than most_eigenvalues rows, measures only the whole model, by
// stochastic Lanczos quadrature (Ubaru, Chen & Saad 2017) without forming the kernel: four random
// vectors, 32 steps each, and the exact trace; other numbers of ranks agree up to rounding.
// `kernel` (may be empty) is called on rank 0 with every layer's [rows, rows]. User error if the
// model's rows depend on each other. Collective.
using NtkKernelVisit =
    std::function<Status(const std::string& layer, int64_t rows, std::span<const double> kernel)>;
StatusOr<NtkMeasurement> MeasureNtk(const NtkModel& model, const Dataset& dataset, Split split,
                                    const RowOrder& order, int64_t rows,
                                    const NtkKernelVisit& kernel, Communicator* communicator,
                                    ThreadPool* pool);

// Returns the gradients of the table rows that a batch's rows use, `width` numbers each. Computes
// them from the gradients of the pooled features, deltas [rows][fields * width].
NtkTableGradients TableGradients(const SparseBatch& sparse, std::span<const FieldSpec> fields,
                                 int64_t width, std::span<const double> deltas);

// Writes a measurement's files into `directory`. ntk.jsonl has one line per record.
// ntk_spectrum.csv has all eigenvalues and ntk_spectrum.svg shows them; with Lanczos' method
// ntk_density.csv replaces both. ntk_density.svg is always written. If exported, what the pictures
// show stands in ntk_spectrum_drawn.* and ntk_density_drawn.*. `model` is the model's name in the
// pictures.
Status WriteNtk(const std::string& directory, const std::string& model,
                const std::vector<NtkRecord>& records, std::optional<ExportFormat> exported);
// Returns the measurement for people, in columns.
std::string NtkText(const NtkMeasurement& measurement);
// Returns a matrix [rows, rows] as the bytes of a NumPy file (.npy, version 1.0).
std::string NpyText(int64_t rows, std::span<const double> matrix);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_NTK_H_
