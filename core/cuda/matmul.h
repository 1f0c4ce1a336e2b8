#ifndef ELASTOR_CORE_CUDA_MATMUL_H_
#define ELASTOR_CORE_CUDA_MATMUL_H_

#include <cstdint>
#include <memory>

#include "core/base/precision.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// A batch of matrices in device memory. Stored row-major, element (i, j) of matrix (o, b) at
// data[o * outer_stride + b * batch_stride + i * row_stride + j]; `transposed`: the operand is the
// transpose of what is stored.
template <typename T>
struct Matrices {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t batch_stride = 0;
  int64_t outer_stride = 0;
  bool transposed = false;  // only for operands a and b
};

// C = A B, or C = C + A B, for outer * batch problems: A [m, k], B [k, n], C [m, n], then C += bias
// (n elements, for every row; aligned to 16 bytes) and C = max(C, 0). All in float, rounded to Out
// once; the bias of a BFloat16 C is rounded to BFloat16 first, and cuBLAS may round A B
// with its bias before it adds what was in C. Row strides are at least the stored columns; strides
// of a and b between problems may be 0 (shared); strides of c may not.
//
// Bits, with SumOrder::kFixed: the algorithm is a function of `n`, `k`, the canonical sizes,
// transposition, types, row strides and alignment, never of m, batch and outer or of timing, and
// has no split or atomic sums; so an element depends on its row of A and column of B alone,
// wherever they stand in however large a call, on one GPU model with one version of cuBLAS.
// If m, or batch and outer, are a rank's share, canonical_m and canonical_problems give the sizes
// of the whole job's batch, no less than the share's (0: m and outer * batch). Alignment is the
// largest power of two, up to 16 bytes, that divides data and all its strides. Set the strides even
// if there is one problem, and split an aligned buffer by whole problems or rows; then the
// alignment does not depend on the share either.
template <typename In, typename Out>
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Matrices<const In> a;
  Matrices<const In> b;
  Matrices<Out> c;
  int64_t batch = 1;
  int64_t outer = 1;
  bool accumulate = false;
  const float* bias = nullptr;  // one problem only
  bool relu = false;            // only allowed with a bias
  int64_t canonical_m = 0;
  int64_t canonical_problems = 0;
};

// kAny: the algorithm is cuBLASLt's first for the call's own sizes and may cut sums over k into
// parts that run side by side. An element's bits then depend on all sizes of the call.
enum class SumOrder { kFixed, kAny };

// Matrix products on one stream, by cuBLASLt with a workspace of its own (32 MiB). Plans are made
// at the first call of a shape (never while a graph is captured: run the shape once before) and
// kept; captured graphs need the object as long as they are launched.
class Matmul {
 public:
  // stream outlives the object. precision: kFloat32 or kTf32 for float operands, kBFloat16 for
  // BFloat16 ones.
  Matmul(Stream* stream, Precision precision, SumOrder sums = SumOrder::kFixed);
  ~Matmul();

  // (float, float), (BFloat16, BFloat16) or (BFloat16, float).
  template <typename In, typename Out>
  void Run(const Product<In, Out>& product);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_MATMUL_H_
