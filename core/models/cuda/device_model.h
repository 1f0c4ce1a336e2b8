#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_MODEL_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_MODEL_H_

#include <memory>

#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/models/model.h"
#include "core/ops/cuda/device_pass.h"
#include "core/ops/cuda/leaf_gradients.h"

namespace elastor::cuda {

// A model of core/models on the device: the same parameters, in the same flat layout, computed for
// all leaves of a rank at once. Activations are A (float or BFloat16), parameters, gradients and
// logits float. Calls only enqueue work on the model's stream.
template <typename A>
class DeviceModel {
 public:
  virtual ~DeviceModel() = default;

  // Memory for passes of up to `shape.rows()` rows and `shape.leaves` leaves. Waits for the stream.
  virtual void Reserve(const LeafShape& shape) = 0;
  // New parameter values, by work enqueued before; the flat array stays in place. (Copies rounded
  // for the products are made here.)
  virtual void SetWeights(const float* weights) = 0;

  // E: [rows, 1, n k], which the caller fills but for the numeric fields' features (the first),
  // padding with zeros; and its gradient after Backward. Valid after Reserve.
  virtual Activations<A> Embeddings(const LeafShape& shape) const = 0;
  virtual Activations<const A> EmbeddingGradients(const LeafShape& shape) const = 0;
  // [rows]; dlogits is filled by the caller between Forward and Backward.
  virtual float* Logits() const = 0;
  virtual float* LogitGradients() const = 0;

  virtual void Forward(const DevicePass& pass) = 0;
  virtual void Backward(const DevicePass& pass, LeafGradients* gradients) = 0;

  // Stage `stage` (Model::stages()) of the last Forward, row-major [rows, tokens, features]. Valid
  // until the next call.
  virtual Activations<const A> StageOutput(const LeafShape& shape, int stage) const = 0;
};

// spec as for MakeModel; `model` is that model, whose layout is used. Both outlive the result.
template <typename A>
std::unique_ptr<DeviceModel<A>> MakeDeviceModel(const ModelSpec& spec, const Model<float>& model,
                                                const DeviceModelOptions& options, Stream* stream);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_MODEL_H_
