#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_LINEAR_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_LINEAR_H_

#include <cstdint>
#include <string>

#include "core/layers/token_linear.h"
#include "core/models/cuda/device_module.h"

namespace elastor::cuda {

// Products with the parameter `name`, W [maps, out, in]: map t for token t of the views, which have
// `maps` tokens. Rows of views are places, or a multiple of them where several rows of a place go
// through one map.
template <typename A>
class DeviceMap {
 public:
  DeviceMap(DeviceContext<A>* context, const std::string& name, int64_t maps, int64_t out,
            int64_t in);

  // Of a product: y = x W^T or y += x W^T, then y += bias (one map only; null: none), y = max(y,
  // 0).
  struct Epilogue {
    Store store = Store::kOverwrite;
    const float* bias = nullptr;
    bool relu = false;
  };
  template <typename Out>
  void Forward(const ModulePass& pass, Activations<const A> x, Activations<Out> y,
               const Epilogue& epilogue);
  // dx (+)= dy W. With one map, dx's features may be cut into tokens.
  void InputGradient(const ModulePass& pass, Activations<const A> dy, Activations<A> dx,
                     Store store);
  // Delivers dW = dy^T x of every leaf.
  void WeightGradient(const ModulePass& pass, Activations<const A> dy, Activations<const A> x);

 private:
  int64_t CanonicalRows(const ModulePass& pass, int64_t rows) const;

  DeviceContext<A>* context_;
  int64_t maps_;
  int64_t out_;
  int64_t in_;
  int parameter_;
};

// TokenLinear (core/layers/token_linear.h). With shared weights the tokens of a row are rows of one
// product; views are row-major then.
template <typename A>
class DeviceLinear {
 public:
  DeviceLinear(DeviceContext<A>* context, const std::string& name, int64_t tokens, int64_t in,
               int64_t out, Sharing sharing, Bias bias = Bias::kAdded);

  // z = x W^T + b, y = activation(z); y may be z (ReLU, identity), and z is arbitrary where y is
  // other memory and activation the identity or ReLU.
  template <typename Out>
  void Forward(const ModulePass& pass, Activations<const A> x, Activation activation,
               Activations<Out> z, Activations<Out> y);
  // dz: gradient before the activation. dx may be empty.
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dz,
                Activations<A> dx);

 private:
  template <typename T>
  Activations<T> Merged(Activations<T> view) const;

  DeviceContext<A>* context_;
  bool merged_;  // tokens are rows
  int64_t maps_;
  DeviceMap<A> map_;
  int bias_ = -1;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_LINEAR_H_
