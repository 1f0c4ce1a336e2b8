#include "core/models/mlp_model.h"

#include "core/models/model_layers.h"

namespace elastor {

template <typename T>
MlpModel<T>::MlpModel(const ModelSpec& spec) : Model<T>(spec) {
  mlp_ = std::make_unique<Mlp<T>>(this->builder(), "mlp", BaselineLayers(spec));
  this->FinishLayout();
}

template class MlpModel<float>;
template class MlpModel<double>;

}  // namespace elastor
