#ifndef ELASTOR_CORE_OPS_SINKHORN_MIX_H_
#define ELASTOR_CORE_OPS_SINKHORN_MIX_H_

#include <vector>

#include "core/kernels/sinkhorn.h"
#include "core/ops/op.h"

namespace elastor {

// Mixing by doubly normalised matrices (UniMixer, arXiv 2604.00590). x is M blocks of c features,
// a matrix X [M, c]; W = W(A) are the matrices of core/kernels/sinkhorn.h.
//   kWithin:   y_i = x_i W_i for every block i, W_i [c, c]: features of a block
//   kBetween:  Y = W X, W [M, M]: blocks
// Parameters: the logits A, [M, c, c] or [M, M]. With rank r > 0 they are a product, A = L R, and
// the parameters are its factors: L [M, r], and R [r, c, c] or [r, M].
// Order of additions: y and dx as a linear map's. A leaf's dW is a weight gradient, summed over
// ascending columns of X in kBetween; then comes the leaf's dA (core/kernels/sinkhorn.h), then
// leaves are added.
struct SinkhornMixOp : OpBase {
  static constexpr const char* kName = "sinkhorn mix";
  enum class Mixes { kWithin, kBetween };
  Mixes mixes = Mixes::kWithin;
  int64_t blocks = 1;
  int64_t width = 0;
  int64_t rank = 0;
  double tau = 1;
  int64_t iterations = 20;

  bool within() const { return mixes == Mixes::kWithin; }
  // Returns the matrices as weights [out, in] of a linear map: y_i' = W_i' x_i'.
  SinkhornShape matrices() const {
    return {within() ? blocks : 1, within() ? width : blocks, tau, iterations, within()};
  }
  // The problems that the matrices are applied to, each by its own or by the only one.
  int64_t problems() const { return within() ? blocks : width; }
  int64_t columns() const { return within() ? width * width : blocks; }  // of R
  std::vector<std::vector<int64_t>> parameter_shapes() const {
    std::vector<int64_t> last = within() ? std::vector{width, width} : std::vector{blocks};
    std::vector<int64_t> first = {blocks};
    if (rank == 0) {
      first.insert(first.end(), last.begin(), last.end());
      return {first};
    }
    first.push_back(rank);
    last.insert(last.begin(), rank);
    return {first, last};
  }
  int64_t multiply_adds() const { return blocks * width * matrices().size; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK_EQ(inputs.size(), 1u);
    CHECK_EQ(inputs[0].features(), blocks * width);
    return {blocks, width};
  }
};
ELASTOR_DECLARE_KERNELS(SinkhornMixOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_SINKHORN_MIX_H_
