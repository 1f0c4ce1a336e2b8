#include "core/ops/batch_norm.h"

#include "core/base/canonical_flush.h"
#include "core/kernels/batch_norm.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class BatchNormKernel final : public CpuKernel<T> {
 public:
  BatchNormKernel(const BatchNormOp&, CpuKernelContext* context)
      : features_(context->input_features(0)),
        mean_(context->SaveFlat(features_)),
        variance_(context->SaveFlat(features_)),
        scale_(context->SaveFlat(features_)),
        running_scale_(features_) {
    for (int p = 0; p < kParameters; ++p) {
      parameters_[p] = context->parameter(p);
      offsets_[p] = context->offset(p);
    }
  }

  KernelTraits traits() const override { return {.reads_inputs = 1, .gradient_in_place = true}; }

  void Prepare(const T* parameters) override {
    for (int p = 0; p < kParameters; ++p) values_[p] = parameters + offsets_[p];
    BatchNormScale<T>(kBatchNormEpsilon, features_, values_[kRunningVariance],
                      running_scale_.data());
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    const Panels<const T> x = operands.inputs[0];
    if (!pass.training) {
      BatchNormForward<T>(x, values_[kRunningMean], running_scale_.data(), values_[kGain],
                          values_[kBias], operands.output);
      return;
    }
    T* const mean = memory.SavedFlat(mean_);
    T* const scale = memory.SavedFlat(scale_);
    T* const variance = memory.SavedFlat(variance_);
    pass.Share(features_, [&](int64_t begin, int64_t end) {
      const Panels<const T> part = x.Slice(begin, end - begin);
      BatchStatistics<T>(kBatchNormEpsilon, part, mean + begin, variance + begin, scale + begin);
      BatchNormForward<T>(part, mean + begin, scale + begin, values_[kGain] + begin,
                          values_[kBias] + begin, operands.output.Slice(begin, end - begin));
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    CHECK_EQ(pass.leaves.leaves().size(), 1u);
    const T* const mean = memory.SavedFlat(mean_);
    const T* const scale = memory.SavedFlat(scale_);
    const auto dgain = pass.sink->Open(parameters_[kGain]);
    const auto dbias = pass.sink->Open(parameters_[kBias]);
    CHECK(dgain.store == dbias.store);
    pass.Share(features_, [&](int64_t begin, int64_t end) {
      const int64_t count = end - begin;
      BatchNormBackward<T>(operands.inputs[0].Slice(begin, count), mean + begin, scale + begin,
                           values_[kGain] + begin, operands.doutput.Slice(begin, count),
                           operands.dinputs[0].Slice(begin, count), dgain.data + begin,
                           dbias.data + begin, dgain.store);
    });
    pass.sink->Close(parameters_[kGain]);
    pass.sink->Close(parameters_[kBias]);
    const double rows = static_cast<double>(pass.rows());
    DeliverStatistic(pass, parameters_[kRunningMean], mean, 1);
    DeliverStatistic(pass, parameters_[kRunningVariance], memory.SavedFlat(variance_),
                     pass.rows() > 1 ? rows / (rows - 1) : 1);
  }

 private:
  // Places of the parameters in the op's order.
  enum { kGain, kBias, kRunningMean, kRunningVariance, kParameters };

  void DeliverStatistic(const Pass<T>& pass, int statistic, const T* values, double factor) const {
    const auto target = pass.sink->Open(statistic);
    for (int64_t f = 0; f < features_; ++f) {
      const T value = CanonicalCast<T>(values[f] * factor * pass.leaf_share);
      target.data[f] = target.store == Store::kAdd ? target.data[f] + value : value;
    }
    pass.sink->Close(statistic);
  }

  int64_t features_;
  int parameters_[kParameters];
  int64_t offsets_[kParameters];
  const T* values_[kParameters] = {};
  // Saved: of the pass's rows.
  int mean_;
  int variance_;
  int scale_;
  std::vector<T> running_scale_;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(BatchNormOp, BatchNormKernel)

}  // namespace elastor
