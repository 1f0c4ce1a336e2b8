#include "core/models/cuda/device_model.h"

#include "core/models/cuda/device_mlp_model.h"
#include "core/models/cuda/device_model_base.h"
#include "core/models/cuda/device_token_model.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {

template <typename A>
DeviceModelBase<A>::DeviceModelBase(const ModelSpec& spec, const Model<float>& model,
                                    const DeviceModelOptions& options, Stream* stream)
    : context_(&model.parameters(), options, stream),
      numeric_fields_(spec.numeric_fields),
      embedding_width_(spec.embedding_width),
      stages_(model.stages()) {
  e_ = context_.Keep(TokenLayout::kRowMajor, 1, model.inputs());
  de_ = context_.Keep(TokenLayout::kRowMajor, 1, model.inputs());
  rounded_dlogits_ = context_.Keep(TokenLayout::kRowMajor, 1, 1);
  logits_ = context_.workspace().Keep({.row = sizeof(float)});
  dlogits_ = context_.workspace().Keep({.row = sizeof(float)});
  if (numeric_fields_ == 0) return;
  vectors_ = context_.layout().Find("numeric.vectors");
  missing_ = context_.layout().Find("numeric.missing");
  context_.ReserveColumnSums(2 * numeric_fields_ * embedding_width_, 1);
}

template <typename A>
void DeviceModelBase<A>::Reserve(const LeafShape& shape) {
  context_.workspace().Reserve(shape.rows(), shape.leaves);
}

template <typename A>
Activations<A> DeviceModelBase<A>::Embeddings(const LeafShape& shape) const {
  return context_.View(shape, e_);
}

template <typename A>
Activations<const A> DeviceModelBase<A>::EmbeddingGradients(const LeafShape& shape) const {
  return context_.View(shape, de_);
}

template <typename A>
void DeviceModelBase<A>::Forward(const DevicePass& pass) {
  const Activations<A> e = Embeddings(pass.shape);
  if (numeric_fields_ > 0) {
    NumericEmbedding<A>(context_.stream(), pass.inputs.numeric, pass.inputs.place_row,
                        numeric_fields_, embedding_width_, context_.values(vectors_),
                        context_.values(missing_), e);
  }
  ForwardLayers({pass}, e, Activations<float>::RowMajor(Logits(), pass.shape.rows(), 1, 1));
}

template <typename A>
void DeviceModelBase<A>::Backward(const DevicePass& pass, LeafGradients* gradients) {
  CHECK_EQ(pass.shape.leaves, gradients->leaves());
  const ModulePass module_pass{pass, gradients};
  const Activations<A> de = context_.View(pass.shape, de_);
  BackwardLayers(module_pass, Embeddings(pass.shape), RoundedLogitGradients(pass.shape), de);
  if (numeric_fields_ > 0) DeliverNumericFields(module_pass, de);
}

template <typename A>
void DeviceModelBase<A>::DeliverNumericFields(const ModulePass& pass, Activations<const A> de) {
  const LeafGradients::Target dvectors = pass.gradients->Open(vectors_, 1);
  const LeafGradients::Target dmissing = pass.gradients->Open(missing_, 1);
  NumericEmbeddingBackward<A>(context_.stream(), pass.inputs.numeric, pass.inputs.place_row,
                              numeric_fields_, embedding_width_, pass.shape, de, dvectors.data,
                              dmissing.data, dvectors.leaf_stride, context_.workspace().scratch());
  pass.gradients->Close(missing_);
  pass.gradients->Close(vectors_);
}

template <typename A>
Activations<const A> DeviceModelBase<A>::RoundedLogitGradients(const LeafShape& shape) const {
  if constexpr (std::is_same_v<A, float>) {
    return Activations<const A>::RowMajor(LogitGradients(), shape.rows(), 1, 1);
  } else {
    const Activations<A> rounded = context_.View(shape, rounded_dlogits_);
    Round(context_.stream(), LogitGradients(), rounded.data, shape.rows());
    return rounded;
  }
}

template <typename A>
Activations<const A> DeviceModelBase<A>::StageOutput(const LeafShape& shape, int stage) const {
  const Activations<const A> output = stage == 0 ? Embeddings(shape) : LayerOutput(shape, stage);
  CHECK(output.row_major());
  return output.WithTokens(stages_[stage].tokens);
}

template <typename A>
std::unique_ptr<DeviceModel<A>> MakeDeviceModel(const ModelSpec& spec, const Model<float>& model,
                                                const DeviceModelOptions& options, Stream* stream) {
  if (spec.kind == ModelSpec::Kind::kMlp) {
    return std::make_unique<DeviceMlpModel<A>>(spec, model, options, stream);
  }
  return std::make_unique<DeviceTokenModel<A>>(spec, model, options, stream);
}

#define ELASTOR_INSTANTIATE(A)                              \
  template class DeviceModelBase<A>;                        \
  template std::unique_ptr<DeviceModel<A>> MakeDeviceModel( \
      const ModelSpec&, const Model<float>&, const DeviceModelOptions&, Stream* stream);
ELASTOR_INSTANTIATE(float)
ELASTOR_INSTANTIATE(BFloat16)
#undef ELASTOR_INSTANTIATE

}  // namespace elastor::cuda
