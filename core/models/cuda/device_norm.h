#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_NORM_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_NORM_H_

#include <cstdint>
#include <string>

#include "core/models/cuda/device_module.h"
#include "core/kernels/norm.h"

namespace elastor::cuda {

// NormLayer (core/layers/norm_layer.h): over the shape.width features of each of `tokens` tokens.
// Views have that shape and any layout.
template <typename A>
class DeviceNorm {
 public:
  DeviceNorm(DeviceContext<A>* context, const std::string& name, int64_t tokens,
             const NormShape& shape);

  // y = norm(x + residual); residual may be empty.
  void Forward(const ModulePass& pass, Activations<const A> x, Activations<const A> residual,
               Activations<A> y);
  // dx = gradient of the sum, plus residual (may be empty). dx may be dy or residual.
  void Backward(const ModulePass& pass, Activations<const A> dy, Activations<const A> residual,
                Activations<A> dx);

 private:
  DeviceContext<A>* context_;
  NormShape shape_;
  int gain_;
  int bias_ = -1;
  ActivationSlot normalized_;
  int scale_;  // [rows][tokens]
};

// BatchNormLayer (core/layers/batch_norm_layer.h).
template <typename A>
class DeviceBatchNorm {
 public:
  DeviceBatchNorm(DeviceContext<A>* context, const std::string& name, int64_t features);

  // [rows, 1, features].
  void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y);
  // dx may be dy.
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                Activations<A> dx);

 private:
  void DeliverStatistic(const ModulePass& pass, int statistic, bool unbiased, int values);

  DeviceContext<A>* context_;
  int64_t features_;
  int gain_;
  int bias_;
  int running_mean_;
  int running_variance_;
  // Workspace: [leaves][features] each, of the pass; and [features].
  int mean_;
  int variance_;
  int scale_;
  int running_scale_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_NORM_H_
