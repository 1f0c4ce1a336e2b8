#ifndef ELASTOR_CORE_NTK_NTK_MEMORY_H_
#define ELASTOR_CORE_NTK_NTK_MEMORY_H_

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/workspace.h"

namespace elastor {

// How a model's neural tangent kernel is measured (trainer/evaluate/ntk.h), and what that takes.

// Of more rows than kMaxNtkEigenvalues, whose eigenvalues would take minutes, only the largest
// eigenvalue and the density are found, in so many steps of Lanczos' method.
inline constexpr int64_t kMaxNtkEigenvalues = 4096;
inline constexpr int64_t kMaxNtkRows = 100'000;
inline constexpr int kNtkLanczosSteps = 32;
// Numbers of a row's gradient that are held of every row at once: 128 KiB.
inline constexpr int64_t kNtkRowElements = 16384;

// Of a model of `outputs`, those of which the kernel is the mean: all, or of more than
// kMostNtkOutputs so many, all different and spread evenly.
inline constexpr int64_t kMostNtkOutputs = 64;
std::vector<int64_t> NtkOutputs(int64_t outputs);

class NtkMemory {
 public:
  explicit NtkMemory(const Graph& graph);

  // Bytes that a rank is sure to touch for the kernel of `rows` different rows, of which own_rows
  // are its own; at most 2^62. 0: the model has no such kernel. Of a model of more than 2^20
  // numbers the rows' gradients, at most kNtkRowElements a row, do not count.
  int64_t Bytes(int64_t rows, int64_t own_rows, int rank, int ranks, int threads) const;

 private:
  int64_t outputs_ = 0;
  int64_t flat_size_ = 0;
  int64_t matrices_ = 0;  // numbers of the weights that are matrices
  int64_t table_features_ = 0;
  int64_t input_bytes_ = 0;  // of a row's numeric fields and ids
  int64_t round_ = 0;        // numbers of a row's gradient that are held at once
  WorkspacePlan workspace_;  // of a pass
};

}  // namespace elastor

#endif  // ELASTOR_CORE_NTK_NTK_MEMORY_H_
