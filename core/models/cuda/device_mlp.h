#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_MLP_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_MLP_H_

#include <memory>
#include <string>
#include <vector>

#include "core/layers/mlp.h"
#include "core/models/cuda/device_linear.h"
#include "core/models/cuda/device_module.h"
#include "core/models/cuda/device_norm.h"

namespace elastor::cuda {

// Mlp (core/layers/mlp.h). Where tokens have weights of their own, hidden activations are
// token-major, else row-major; so x and dy should be, and must be with shared weights.
template <typename A>
class DeviceMlp final : public DeviceModule<A> {
 public:
  DeviceMlp(DeviceContext<A>* context, const std::string& name, const MlpOptions& options);

  static TokenLayout Layout(const MlpOptions& options);

  void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) override;
  // dx may be empty.
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                Activations<A> dx) override;
  // Forward with a result that is not rounded to A.
  void ForwardInFloat(const ModulePass& pass, Activations<const A> x, Activations<float> y);

 private:
  struct Layer {
    std::unique_ptr<DeviceLinear<A>> linear;
    std::unique_ptr<DeviceNorm<A>> norm;             // or
    std::unique_ptr<DeviceBatchNorm<A>> batch_norm;  // or neither
    ActivationSlot z;    // before norm or activation; `out` where nobody needs it
    ActivationSlot out;  // after activation and dropout
    ActivationSlot dout;
    uint32_t dropout_layer = 0;
  };

  void MakeHidden(const std::string& name, int64_t in, int64_t out, int dout);
  // The output layer's input.
  Activations<const A> ForwardHidden(const ModulePass& pass, Activations<const A> x);
  void ForwardLayer(const ModulePass& pass, Layer& layer, Activations<const A> x);
  // From dout to the linear map's gradient, in place.
  void BackwardLayer(const ModulePass& pass, Layer& layer, Activations<A> dout);

  DeviceContext<A>* context_;
  MlpOptions options_;
  std::vector<Layer> hidden_;
  std::unique_ptr<DeviceLinear<A>> output_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_MLP_H_
