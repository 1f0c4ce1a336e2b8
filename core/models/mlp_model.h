#ifndef ELASTOR_CORE_MODELS_MLP_MODEL_H_
#define ELASTOR_CORE_MODELS_MLP_MODEL_H_

#include <memory>

#include "core/layers/mlp.h"
#include "core/models/model.h"

namespace elastor {

// The baseline DNN: flattened embeddings, hidden layers (linear, optional batch norm, ReLU,
// dropout), one logit.
template <typename T>
class MlpModel final : public Model<T> {
 public:
  explicit MlpModel(const ModelSpec& spec);
  int64_t multiply_adds() const override { return mlp_->multiply_adds(); }

 private:
  void PrepareLayers(const T* parameters) override { mlp_->Prepare(parameters); }
  void ForwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<T> logits) const override {
    mlp_->Forward(pass, e, logits);
  }
  void BackwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<const T> dlogits,
                      Panels<T> de) const override {
    mlp_->Backward(pass, e, dlogits, de);
  }

  std::unique_ptr<Mlp<T>> mlp_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_MLP_MODEL_H_
