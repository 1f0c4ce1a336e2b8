#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_FEED_FORWARD_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_FEED_FORWARD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/models/cuda/device_linear.h"
#include "core/models/cuda/device_module.h"
#include "core/models/cuda/device_norm.h"

namespace elastor::cuda {

// Per-token feed-forward networks (core/layers/feed_forward.h). x, dy and dx should be token-major.

// Z_t = W3 (act(W1 M_t) * (W2 M_t)) + Wr M_t, both lifts as one product.
template <typename A>
class DeviceGatedFeedForward final : public DeviceModule<A> {
 public:
  DeviceGatedFeedForward(DeviceContext<A>* context, const std::string& name, int64_t tokens,
                         int64_t width, int64_t hidden, Activation activation);

  void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) override;
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                Activations<A> dx) override;

 private:
  DeviceContext<A>* context_;
  Activation activation_;
  DeviceMap<A> lift_;
  DeviceMap<A> down_;
  DeviceMap<A> residual_;
  ActivationSlot lifted_;  // [T, 2H]: W1 M | W2 M; then its gradient
  ActivationSlot h_;       // [T, H]
  ActivationSlot dh_;
};

// u = A M_t + a + act(B M_t + b);  Z_t = W (u * (C M_t + c)) + w + R M_t + s, the three lifts as
// one product.
template <typename A>
class DeviceGatedSumFeedForward final : public DeviceModule<A> {
 public:
  DeviceGatedSumFeedForward(DeviceContext<A>* context, const std::string& name, int64_t tokens,
                            int64_t width, int64_t hidden, Activation activation);

  void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) override;
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                Activations<A> dx) override;

 private:
  void DeliverOutputBiases(const ModulePass& pass, Activations<const A> dy);

  DeviceContext<A>* context_;
  int64_t tokens_;
  int64_t width_;
  Activation activation_;
  DeviceMap<A> lift_;
  DeviceMap<A> down_;
  DeviceMap<A> residual_;
  int lift_bias_;
  int down_bias_;
  int residual_bias_;
  ActivationSlot lifted_;  // [T, 3H]: A M | B M | C M; then its gradient
  ActivationSlot h_;       // [T, H]
  ActivationSlot dh_;
  int output_bias_;  // workspace: w + s, [T, D]
};

// Residual (core/layers/residual.h): y = x + inner(norm(x)), the norm over a token's features.
template <typename A>
class DeviceResidual final : public DeviceModule<A> {
 public:
  DeviceResidual(DeviceContext<A>* context, const std::string& name, int64_t tokens,
                 const NormShape& norm, std::unique_ptr<DeviceModule<A>> inner);

  void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) override;
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                Activations<A> dx) override;

 private:
  DeviceContext<A>* context_;
  std::unique_ptr<DeviceModule<A>> inner_;
  DeviceNorm<A> norm_;
  ActivationSlot normal_;  // norm(x)
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_FEED_FORWARD_H_
