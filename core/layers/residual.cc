#include "core/layers/residual.h"

#include <utility>

#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
Residual<T>::Residual(ModelBuilder* builder, const std::string& name, const NormShape& norm,
                      std::unique_ptr<Module<T>> inner)
    : Module<T>(inner->inputs(), inner->outputs()),
      inner_(std::move(inner)),
      norm_(builder, name + ".norm", inner_->inputs(), norm),
      normal_(builder->workspace->Activations(inner_->inputs())),
      dnormal_(builder->workspace->Activations(inner_->inputs())) {
  CHECK_EQ(inner_->inputs(), inner_->outputs());
}

template <typename T>
void Residual<T>::Prepare(const T* parameters) {
  norm_.Prepare(parameters);
  inner_->Prepare(parameters);
}

template <typename T>
void Residual<T>::DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
  norm_.Forward(pass, x, pass.Slot(normal_));
  inner_->Forward(pass, pass.Slot(normal_), y);
  Add<T>(x, y, y);
}

template <typename T>
void Residual<T>::DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                             Panels<T> dx) const {
  (void)x;
  const Panels<T> dnormal = pass.Slot(dnormal_);
  inner_->Backward(pass, pass.Slot(normal_), dy, dnormal);
  norm_.BackwardWithResidual(pass, dnormal, dy, dx);
}

template class Residual<float>;
template class Residual<double>;

}  // namespace elastor
