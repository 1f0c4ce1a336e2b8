#ifndef ELASTOR_CORE_LAYERS_NORM_LAYER_H_
#define ELASTOR_CORE_LAYERS_NORM_LAYER_H_

#include <string>

#include "core/layers/module.h"
#include "core/kernels/norm.h"

namespace elastor {

// Layer norm (gain and bias) or RMS norm (gain) over each run of `shape.width` features; gain 1 and
// bias 0 at first, shared by the runs.
template <typename T>
class NormLayer final : public Module<T> {
 public:
  NormLayer(ModelBuilder* builder, const std::string& name, int64_t features,
            const NormShape& shape);

  void Prepare(const T* parameters) override;

  // Backward that also adds `residual` (same shape) to dx; empty: nothing is added. dx may be
  // residual's memory.
  void BackwardWithResidual(const Pass<T>& pass, Panels<const T> dy, Panels<const T> residual,
                            Panels<T> dx) const;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;

  NormShape shape_;
  int gain_;
  int bias_ = -1;
  int64_t gain_offset_;
  int64_t bias_offset_ = 0;
  int normalized_;  // workspace
  int scale_;       // workspace
  const T* parameters_ = nullptr;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_NORM_LAYER_H_
