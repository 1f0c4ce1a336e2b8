#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_MODEL_BASE_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_MODEL_BASE_H_

#include <vector>

#include "core/models/cuda/device_model.h"
#include "core/models/cuda/device_module.h"

namespace elastor::cuda {

// What all models have: E and its gradient, numeric fields, logits (core/models/model.h).
template <typename A>
class DeviceModelBase : public DeviceModel<A> {
 public:
  void Reserve(const LeafShape& shape) override;
  void SetWeights(const float* weights) override { context_.SetWeights(weights); }

  Activations<A> Embeddings(const LeafShape& shape) const override;
  Activations<const A> EmbeddingGradients(const LeafShape& shape) const override;
  float* Logits() const override { return context_.workspace().template Slot<float>(logits_); }
  float* LogitGradients() const override {
    return context_.workspace().template Slot<float>(dlogits_);
  }

  void Forward(const DevicePass& pass) override;
  void Backward(const DevicePass& pass, LeafGradients* gradients) override;

  Activations<const A> StageOutput(const LeafShape& shape, int stage) const override;

 protected:
  // Subclasses construct their layers afterwards, in the order of the CPU model's.
  DeviceModelBase(const ModelSpec& spec, const Model<float>& model,
                  const DeviceModelOptions& options, Stream* stream);

  // Constant while passes run; enqueuing work is no change.
  DeviceContext<A>* context() const { return &context_; }

 private:
  // logits: [rows, 1, 1].
  virtual void ForwardLayers(const ModulePass& pass, Activations<const A> e,
                             Activations<float> logits) = 0;
  virtual void BackwardLayers(const ModulePass& pass, Activations<const A> e,
                              Activations<const A> dlogits, Activations<A> de) = 0;
  // Of stages from 1.
  virtual Activations<const A> LayerOutput(const LeafShape& shape, int stage) const = 0;

  void DeliverNumericFields(const ModulePass& pass, Activations<const A> de);
  // LogitGradients(), rounded to A.
  Activations<const A> RoundedLogitGradients(const LeafShape& shape) const;

  mutable DeviceContext<A> context_;
  int64_t numeric_fields_;
  int64_t embedding_width_;
  std::vector<Stage> stages_;
  int vectors_ = -1;
  int missing_ = -1;
  ActivationSlot e_;
  ActivationSlot de_;
  ActivationSlot rounded_dlogits_;
  int logits_;
  int dlogits_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_MODEL_BASE_H_
