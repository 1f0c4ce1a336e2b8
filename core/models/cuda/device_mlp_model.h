#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_MLP_MODEL_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_MLP_MODEL_H_

#include "core/models/cuda/device_mlp.h"
#include "core/models/cuda/device_model_base.h"
#include "core/models/model_layers.h"

namespace elastor::cuda {

// MlpModel (core/models/mlp_model.h).
template <typename A>
class DeviceMlpModel final : public DeviceModelBase<A> {
 public:
  DeviceMlpModel(const ModelSpec& spec, const Model<float>& model,
                 const DeviceModelOptions& options, Stream* stream)
      : DeviceModelBase<A>(spec, model, options, stream),
        mlp_(this->context(), "mlp", BaselineLayers(spec)) {}

 private:
  void ForwardLayers(const ModulePass& pass, Activations<const A> e,
                     Activations<float> logits) override {
    mlp_.ForwardInFloat(pass, e, logits);
  }
  void BackwardLayers(const ModulePass& pass, Activations<const A> e, Activations<const A> dlogits,
                      Activations<A> de) override {
    mlp_.Backward(pass, e, dlogits, de);
  }
  Activations<const A> LayerOutput(const LeafShape& shape, int stage) const override {
    (void)shape;
    LOG(FATAL) << "no stage " << stage;
  }

  DeviceMlp<A> mlp_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_MLP_MODEL_H_
