#ifndef ELASTOR_CORE_NTK_NTK_MEMORY_H_
#define ELASTOR_CORE_NTK_NTK_MEMORY_H_

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/workspace.h"

namespace elastor {

// Limits and memory of the measurement of a model's neural tangent kernel (trainer/evaluate/ntk.h).

// With more than kMaxNtkEigenvalues rows, all eigenvalues would take minutes. Then only the largest
// eigenvalue and the density are computed, by kNtkLanczosSteps steps of Lanczos' method from each
// of kNtkStarts random vectors, whose spread tells the density's error.
inline constexpr int64_t kMaxNtkEigenvalues = 4096;
inline constexpr int64_t kMaxNtkRows = 100'000;
inline constexpr int kNtkLanczosSteps = 32;
inline constexpr int kNtkStarts = 4;
// How many elements of its gradient every row holds at once: 128 KiB.
inline constexpr int64_t kNtkRowElements = 16384;

// Returns the outputs over which the kernel is averaged, for a model of `outputs` outputs: all of
// them, or kMostNtkOutputs different, evenly spread ones if there are more.
inline constexpr int64_t kMostNtkOutputs = 64;
std::vector<int64_t> NtkOutputs(int64_t outputs);

class NtkMemory {
 public:
  explicit NtkMemory(const Graph& graph);

  // Returns a lower bound of the bytes that a rank touches for the kernel of `rows` different rows,
  // own_rows of which are its own; at most 2^62. 0: the model has no such kernel. For models of
  // more than 2^20 parameters the bound leaves out the rows' gradients, at most kNtkRowElements
  // elements a row.
  int64_t Bytes(int64_t rows, int64_t own_rows, int rank, int ranks, int threads) const;

 private:
  int64_t outputs_ = 0;
  int64_t flat_size_ = 0;
  int64_t matrices_ = 0;  // elements of all weights that are matrices
  int64_t table_features_ = 0;
  int64_t input_bytes_ = 0;  // bytes of a row's numeric fields and ids
  int64_t round_ = 0;        // elements of a row's gradient that are held at once
  WorkspacePlan workspace_;  // plan of the workspace of one pass
};

}  // namespace elastor

#endif  // ELASTOR_CORE_NTK_NTK_MEMORY_H_
