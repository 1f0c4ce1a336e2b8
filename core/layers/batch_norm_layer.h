#ifndef ELASTOR_CORE_LAYERS_BATCH_NORM_LAYER_H_
#define ELASTOR_CORE_LAYERS_BATCH_NORM_LAYER_H_

#include <string>
#include <vector>

#include "core/layers/module.h"
#include "core/kernels/batch_norm.h"

namespace elastor {

inline constexpr double kBatchNormEpsilon = 1e-5;  // PyTorch's default

// Ghost batch normalisation (Hoffer, Hubara & Soudry 2017): y = (x - mean) / sqrt(var + 1e-5) *
// gain + bias for every feature, in training with the mean and biased variance of the pass's rows,
// which must be a whole leaf; in evaluation with running values. Gain 1 and bias 0 at first.
//
// running_mean and running_variance (0 and 1 at first) are statistics of the layout. Backward
// delivers pass.leaf_share times the leaf's mean and unbiased variance (of a single row: the biased
// one, 0) as their gradients, so that the sum over leaves is the mean weighted by rows.
template <typename T>
class BatchNormLayer final : public Module<T> {
 public:
  BatchNormLayer(ModelBuilder* builder, const std::string& name, int64_t features);

  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  // dx may be dy's memory.
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;
  void DeliverStatistic(const Pass<T>& pass, int statistic, const T* values, double factor) const;

  int64_t features_;
  int gain_;
  int bias_;
  int running_mean_;
  int running_variance_;
  // Workspace, of the pass.
  int mean_;
  int variance_;
  int scale_;
  // Parameters.
  const T* gain_values_ = nullptr;
  const T* bias_values_ = nullptr;
  const T* running_mean_values_ = nullptr;
  std::vector<T> running_scale_;
  const ParameterLayout* layout_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_BATCH_NORM_LAYER_H_
