#include "core/ops/batch_norm.h"

#include "core/kernels/cuda/norm.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {
namespace {

// Each leaf has statistics of its own rows. Values are read as [rows, 1, features].
template <typename A>
class BatchNormKernel final : public DeviceKernel<A> {
 public:
  BatchNormKernel(const BatchNormOp&, DeviceKernelContext<A>* context)
      : context_(context), features_(context->output().features()) {
    const int64_t bytes = features_ * static_cast<int64_t>(sizeof(float));
    for (int* slot : {&mean_, &variance_, &scale_}) {
      *slot = context->Reserve(DeviceLife::kKept, {.leaf = bytes});
    }
    running_scale_ = context->Reserve(DeviceLife::kForward, {.once = bytes});
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = 1;
    traits.gradient_in_place = true;
    traits.row_major_input = traits.row_major_output = true;
    traits.row_major_dinput = traits.row_major_doutput = true;
    return traits;
  }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    const Activations<const A> x = operands.inputs[0].WithTokens(1);
    const float* mean = context_->values(kRunningMean);
    float* scale = Data(running_scale_);
    if (pass.training) {
      mean = Data(mean_);
      scale = Data(scale_);
      BatchStatistics<A>(stream, kBatchNormEpsilon, pass.shape, pass.inputs.leaf_counts, x,
                         Data(mean_), Data(variance_), scale);
    } else {
      BatchNormScale(stream, kBatchNormEpsilon, features_, context_->values(kRunningVariance),
                     scale);
    }
    BatchNormForward<A>(stream, pass.shape, x, mean, scale, pass.training ? features_ : 0,
                        context_->values(kGain), context_->values(kBias),
                        operands.output.WithTokens(1));
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    const LeafGradients::Target dgain = context_->Open(pass, kGain, 1);
    const LeafGradients::Target dbias = context_->Open(pass, kBias, 1);
    BatchNormBackward<A>(
        context_->stream(), pass.shape, pass.inputs.leaf_counts, operands.inputs[0].WithTokens(1),
        Data(mean_), Data(scale_), context_->values(kGain), operands.doutput.WithTokens(1),
        operands.dinputs[0].WithTokens(1), dgain.data, dbias.data, dgain.leaf_stride);
    context_->Close(pass, kGain);
    context_->Close(pass, kBias);
    DeliverStatistic(pass, kRunningMean, /*unbiased=*/false, Data(mean_));
    DeliverStatistic(pass, kRunningVariance, /*unbiased=*/true, Data(variance_));
  }

 private:
  enum Parameter { kGain, kBias, kRunningMean, kRunningVariance };

  float* Data(int slot) const { return context_->template Data<float>(slot); }
  void DeliverStatistic(const KernelPass& pass, int statistic, bool unbiased, const float* values) {
    const LeafGradients::Target target = context_->Open(pass, statistic, 1);
    BatchNormDeliver(context_->stream(), pass.shape, pass.inputs.leaf_counts,
                     pass.inputs.batch_rows, features_, unbiased, values, target.data,
                     target.leaf_stride);
    context_->Close(pass, statistic);
  }

  DeviceKernelContext<A>* context_;
  int64_t features_;
  // Slots [leaves][features] of the pass's statistics, and [features].
  int mean_;
  int variance_;
  int scale_;
  int running_scale_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(BatchNormOp, BatchNormKernel)

}  // namespace elastor::cuda
