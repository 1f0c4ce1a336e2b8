#ifndef ELASTOR_CORE_OPS_CUDA_LINEAR_PRODUCTS_H_
#define ELASTOR_CORE_OPS_CUDA_LINEAR_PRODUCTS_H_

#include <cstdint>

#include "core/kernels/matmul.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {

// The products of linear maps whose weights are a node's parameter W [maps, out, in], or computed:
// map t is applied to token t of the views, which have `maps` tokens. Rows of views are device
// rows, or a multiple of them where several rows of a device row go through one map. Maps with one
// output are computed in the orders of core/kernels/cuda/single_output.h.
template <typename A>
class LinearProducts {
 public:
  // parameter: its place in the op's order of parameters.
  LinearProducts(DeviceKernelContext<A>* context, int parameter, int64_t maps, int64_t out,
                 int64_t in);
  // For computed weights, which SetWeights gives before products.
  LinearProducts(DeviceKernelContext<A>* context, int64_t maps, int64_t out, int64_t in)
      : context_(context), maps_(maps), out_(out), in_(in) {}
  void SetWeights(const A* weights) { weights_ = weights; }

  // The steps that end a product: y = x W^T or y += x W^T, then y += bias (only with one map; null:
  // no bias), then y = max(y, 0) if relu.
  struct Epilogue {
    Store store = Store::kOverwrite;
    const float* bias = nullptr;
    bool relu = false;
  };
  template <typename Out>
  void Forward(const DevicePass& pass, Activations<const A> x, Activations<Out> y,
               const Epilogue& epilogue);
  // dx (+)= dy W. With one map, dx's features may be cut into tokens.
  void InputGradient(const DevicePass& pass, Activations<const A> dy, Activations<A> dx,
                     Store store);
  // Delivers dW = dy^T x of every leaf.
  void WeightGradient(const KernelPass& pass, Activations<const A> dy, Activations<const A> x);
  // Computes them to `target`, of the shape that LeafGradients has.
  void WeightGradient(const KernelPass& pass, Activations<const A> dy, Activations<const A> x,
                      const LeafGradients::Target& target);

 private:
  int64_t CanonicalRows(const DevicePass& pass, int64_t rows) const;

  const A* weights() const { return parameter_ < 0 ? weights_ : context_->factors(parameter_); }

  DeviceKernelContext<A>* context_;
  int parameter_ = -1;  // negative: computed weights
  const A* weights_ = nullptr;
  int64_t maps_;
  int64_t out_;
  int64_t in_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_OPS_CUDA_LINEAR_PRODUCTS_H_
