#include "core/models/mlp_model.h"

namespace elastor {

template <typename T>
MlpModel<T>::MlpModel(const ModelSpec& spec) : Model<T>(spec) {
  MlpOptions options;
  options.inputs = this->inputs();
  options.hidden = spec.hidden;
  options.outputs = 1;
  options.hidden_norm = spec.batch_norm ? HiddenNorm::kBatch : HiddenNorm::kNone;
  options.dropout = spec.dropout;
  mlp_ = std::make_unique<Mlp<T>>(this->builder(), "mlp", options);
  this->FinishLayout();
}

template class MlpModel<float>;
template class MlpModel<double>;

}  // namespace elastor
