#ifndef ELASTOR_CORE_LAYERS_RESIDUAL_H_
#define ELASTOR_CORE_LAYERS_RESIDUAL_H_

#include <memory>
#include <string>

#include "core/layers/module.h"
#include "core/layers/norm_layer.h"

namespace elastor {

// y = x + inner(norm(x)), the pre-norm residual block. inner maps features to as many features.
template <typename T>
class Residual final : public Module<T> {
 public:
  Residual(ModelBuilder* builder, const std::string& name, const NormShape& norm,
           std::unique_ptr<Module<T>> inner);

  int64_t multiply_adds() const override { return inner_->multiply_adds(); }
  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;

  std::unique_ptr<Module<T>> inner_;
  NormLayer<T> norm_;
  int normal_;   // workspace: norm(x)
  int dnormal_;  // workspace
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_RESIDUAL_H_
