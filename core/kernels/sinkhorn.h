#ifndef ELASTOR_CORE_KERNELS_SINKHORN_H_
#define ELASTOR_CORE_KERNELS_SINKHORN_H_

#include <cstdint>
#include <vector>

#include "core/base/build_config.h"

namespace elastor {

// Doubly normalised matrices W (Sinkhorn and Knopp 1967) of `count` matrices of logits A
// [size, size], in logarithms:
//   S = (A + A') / (2 tau);  W = exp(S - u - v)
// u belongs to rows, v to columns. From v = 0, `iterations` times:
//   u_i = log sum_j exp(S_ij - v_j), so that rows sum to 1;  v_j = log sum_i exp(S_ij - u_i), so
//   that columns do
// So only the columns' sums are 1 but for rounding. S is symmetric: both lines are one function.
struct SinkhornShape {
  int64_t count = 1;
  int64_t size = 0;
  double tau = 1;
  int64_t iterations = 1;
  bool transposed = false;  // the result is W', whose rows sum to 1

  int64_t matrix() const { return size * size; }
  int64_t elements() const { return count * matrix(); }
  // Returns the number of vectors kept of a matrix: v = 0, then u and v of every iteration.
  ELASTOR_HOST_DEVICE int64_t vectors() const { return 2 * iterations + 1; }
};

// The matrices and what their gradient needs. Sums are chains over ascending rows or columns, and
// gradients are those of all iterations.
template <typename T>
class Sinkhorn {
 public:
  explicit Sinkhorn(const SinkhornShape& shape);

  // logits: [count][size][size].
  void Compute(const T* logits);
  const T* matrices() const { return matrices_.data(); }  // [count][size][size]

  // dlogits = the gradient of the logits, of the matrices' gradient. scratch: scratch_elements().
  void Backward(const T* dmatrices, T* dlogits, T* scratch) const;
  int64_t scratch_elements() const { return (shape_.size + 2) * stride_; }

 private:
  const T* scores(int64_t matrix) const { return scores_.data() + matrix * shape_.size * stride_; }
  const T* vector(int64_t matrix, int64_t t) const {
    return vectors_.data() + (matrix * shape_.vectors() + t) * stride_;
  }

  const SinkhornShape shape_;
  const int64_t stride_;    // of a row, padded to whole vectors of lanes
  std::vector<T> scores_;   // S: [count][size][stride]
  std::vector<T> vectors_;  // [count][vectors][stride]
  std::vector<T> matrices_;
};

// product = left [rows, terms] right [terms, columns]: FMA chains over ascending terms.
template <typename T>
void MultiplyFactors(int64_t rows, int64_t terms, int64_t columns, const T* left, const T* right,
                     T* product);
// dleft = dproduct right', dright = left' dproduct: FMA chains over ascending columns and rows.
template <typename T>
void FactorGradients(int64_t rows, int64_t terms, int64_t columns, const T* left, const T* right,
                     const T* dproduct, T* dleft, T* dright);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_SINKHORN_H_
