#include "core/models/model.h"

#include <utility>

#include "core/models/mlp_model.h"
#include "core/models/token_model.h"
#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
Model<T>::Model(const ModelSpec& spec)
    : builder_{&parameters_, &workspace_plan_},
      numeric_fields_(spec.numeric_fields),
      embedding_width_(spec.embedding_width),
      inputs_(spec.fields() * spec.embedding_width) {
  if (numeric_fields_ > 0) {
    const Init init{spec.embedding_stddev, 0};
    const std::vector<int64_t> shape = {numeric_fields_, embedding_width_};
    vectors_ = parameters_.Declare("numeric.vectors", shape, init, Decay::kEmbedding);
    missing_ = parameters_.Declare("numeric.missing", shape, init, Decay::kEmbedding);
  }
  AddStage("embedding", spec.fields(), spec.embedding_width, -1);
}

template <typename T>
void Model<T>::AddStage(std::string name, int64_t tokens, int64_t width, int slot) {
  stages_.push_back({std::move(name), tokens, width});
  stage_slots_.push_back(slot);
}

template <typename T>
void Model<T>::Prepare(const T* parameters) {
  if (numeric_fields_ > 0) {
    vector_values_ = parameters + parameters_[vectors_].offset;
    missing_values_ = parameters + parameters_[missing_].offset;
  }
  PrepareLayers(parameters);
}

template <typename T>
void Model<T>::Forward(const Pass<T>& pass, const float* numeric, Panels<T> e,
                       Panels<T> logits) const {
  CHECK_EQ(e.features, inputs_);
  if (numeric_fields_ > 0) {
    NumericEmbedding<T>(numeric, numeric_fields_, embedding_width_, vector_values_, missing_values_,
                        e.Slice(0, numeric_features()));
  }
  ForwardLayers(pass, e, logits);
}

template <typename T>
void Model<T>::Backward(const Pass<T>& pass, const float* numeric, Panels<const T> e,
                        Panels<const T> dlogits, Panels<T> de) const {
  BackwardLayers(pass, e, dlogits, de);
  if (numeric_fields_ == 0) return;
  const auto dvectors = pass.sink->Open(vectors_);
  const auto dmissing = pass.sink->Open(missing_);
  CHECK(dvectors.store == dmissing.store);
  NumericEmbeddingBackward<T>(numeric, numeric_fields_, embedding_width_,
                              de.Slice(0, numeric_features()), dvectors.data, dmissing.data,
                              dvectors.store);
  pass.sink->Close(vectors_);
  pass.sink->Close(missing_);
}

template <typename T>
std::unique_ptr<Model<T>> MakeModel(const ModelSpec& spec) {
  if (spec.kind == ModelSpec::Kind::kMlp) return std::make_unique<MlpModel<T>>(spec);
  return std::make_unique<TokenModel<T>>(spec);
}

template class Model<float>;
template class Model<double>;
template std::unique_ptr<Model<float>> MakeModel(const ModelSpec&);
template std::unique_ptr<Model<double>> MakeModel(const ModelSpec&);

}  // namespace elastor
