#include "core/kernels/cuda/elementwise.h"

#include "core/base/random.h"
#include "core/ops/add.h"
#include "core/ops/block_transpose.h"
#include "core/ops/concat.h"
#include "core/ops/cuda/kernel.h"
#include "core/ops/dropout.h"
#include "core/ops/mean_pool.h"
#include "core/ops/multiply.h"
#include "core/ops/pad.h"
#include "core/ops/relu.h"
#include "core/ops/slice.h"
#include "core/ops/sum_pool.h"

namespace elastor::cuda {
namespace {

template <typename A>
class AddKernel final : public DeviceKernel<A> {
 public:
  AddKernel(const AddOp&, DeviceKernelContext<A>* context) : context_(context) {}

  KernelTraits traits() const override {
    const int64_t tokens = context_->output().tokens;
    KernelTraits traits;
    traits.in_place_inputs = 2;
    traits.any_layout = true;
    traits.row_major_input = context_->regroups_inputs(tokens);
    // The inputs get it as it lies, as tokens of their own.
    traits.row_major_doutput =
        context_->input(0).tokens != tokens || context_->input(1).tokens != tokens;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    const int64_t tokens = operands.output.tokens;
    Add<A>(context_->stream(), operands.inputs[0].WithTokens(tokens),
           operands.inputs[1].WithTokens(tokens), operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>&) override {}

 private:
  DeviceKernelContext<A>* context_;
};

// Values are read as [rows, 1, features].
template <typename A>
class BlockTransposeKernel final : public DeviceKernel<A> {
 public:
  BlockTransposeKernel(const BlockTransposeOp& op, DeviceKernelContext<A>* context)
      : op_(op), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_input = traits.row_major_output = true;
    traits.row_major_dinput = traits.row_major_doutput = true;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    Transpose(operands.inputs[0], operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    Transpose(operands.doutput, operands.dinputs[0]);
  }

 private:
  void Transpose(Activations<const A> x, Activations<A> y) {
    const auto each = [this](auto view) {
      return view.RowMajor(view.data, view.rows * op_.count, 1, op_.tokens * op_.width);
    };
    BlockTranspose<A>(context_->stream(), op_.tokens, op_.width, each(x), each(y));
  }

  BlockTransposeOp op_;
  DeviceKernelContext<A>* context_;
};

// Values are read as [rows, 1, features].
template <typename A>
class ConcatKernel final : public DeviceKernel<A> {
 public:
  ConcatKernel(const ConcatOp& op, DeviceKernelContext<A>* context) : op_(op), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_input = context_->regroups_inputs(1);
    traits.row_major_output = traits.row_major_doutput = true;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    const Activations<A> y = operands.output;
    const int64_t first = op_.first_features;
    Copy<A>(context_->stream(), operands.inputs[0].WithTokens(1), y.Slice(0, first));
    Copy<A>(context_->stream(), operands.inputs[1].WithTokens(1),
            y.Slice(first, y.features - first));
  }
  void Backward(const KernelPass&, const BackwardOperands<A>&) override {}

 private:
  ConcatOp op_;
  DeviceKernelContext<A>* context_;
};

template <typename A>
class DropoutKernel final : public DeviceKernel<A> {
 public:
  DropoutKernel(const DropoutOp& op, DeviceKernelContext<A>* context)
      : rate_(op.rate),
        key_(MakeRandomKey(context->options().seed, RandomPurpose::kDropout, op.layer)),
        context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.in_place_inputs = 1;
    traits.keeps_sign = true;
    traits.gradient_in_place = true;
    traits.any_layout = true;
    return traits;
  }
  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    Apply(pass, operands.inputs[0], operands.output);
  }
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    Apply(pass, operands.doutput, operands.dinputs[0]);
  }

 private:
  void Apply(const DevicePass& pass, Activations<const A> x, Activations<A> y) {
    if (x.data != y.data) Copy<A>(context_->stream(), x, y);
    if (!pass.training) return;
    Dropout<A>(context_->stream(), pass.Dropout(key_, rate_), y);
  }

  double rate_;
  uint64_t key_;
  DeviceKernelContext<A>* context_;
};

template <typename A>
class MeanPoolKernel final : public DeviceKernel<A> {
 public:
  MeanPoolKernel(const MeanPoolOp& op, DeviceKernelContext<A>* context)
      : tokens_(op.tokens), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_input = context_->regroups_inputs(tokens_);
    traits.row_major_dinput = context_->regroups_first_input(tokens_);
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    MeanPool<A>(context_->stream(), operands.inputs[0].WithTokens(tokens_), operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    MeanPoolBackward<A>(context_->stream(), operands.doutput,
                        operands.dinputs[0].WithTokens(tokens_));
  }

 private:
  int64_t tokens_;
  DeviceKernelContext<A>* context_;
};

// Values are read as the first input's tokens.
template <typename A>
class MultiplyKernel final : public DeviceKernel<A> {
 public:
  MultiplyKernel(const MultiplyOp&, DeviceKernelContext<A>* context) : context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.any_layout = true;
    traits.reads_inputs = 2;
    traits.row_major_input = traits.row_major_dinput =
        context_->regroups_inputs(context_->output().tokens);
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    const int64_t tokens = operands.output.tokens;
    Multiply<A>(context_->stream(), operands.inputs[0].WithTokens(tokens),
                operands.inputs[1].WithTokens(tokens), operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    const int64_t tokens = operands.doutput.tokens;
    for (const int i : {0, 1}) {
      Multiply<A>(context_->stream(), operands.doutput, operands.inputs[1 - i].WithTokens(tokens),
                  operands.dinputs[i].WithTokens(tokens));
    }
  }

 private:
  DeviceKernelContext<A>* context_;
};

// The input is read as [rows, 1, features] and copied token by token, into any layout; where
// nothing is padded and the layouts are alike, it is not copied.
template <typename A>
class PadKernel final : public DeviceKernel<A> {
 public:
  PadKernel(const PadOp&, DeviceKernelContext<A>* context) : context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.repeats_input = context_->input(0).features() == context_->output().features();
    traits.row_major_input = context_->regroups_inputs(1);
    traits.row_major_doutput = true;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override;
  void Backward(const KernelPass&, const BackwardOperands<A>&) override {}

 private:
  DeviceKernelContext<A>* context_;
};

template <typename A>
void PadKernel<A>::Forward(const DevicePass&, const ForwardOperands<A>& operands) {
  Stream& stream = context_->stream();
  const Activations<const A> x = operands.inputs[0].WithTokens(1);
  const Activations<A> y = operands.output;
  if (x.data == y.data) return;
  const int64_t whole = x.features / y.features;
  const int64_t rest = x.features % y.features;
  if (whole > 0) {
    Copy<A>(stream, x.Slice(0, whole * y.features).WithTokens(whole), y.Tokens(0, whole));
  }
  if (whole == y.tokens) return;
  Fill<A>(stream, 0, y.Tokens(whole, y.tokens - whole));
  if (rest > 0) {
    Copy<A>(stream, x.Slice(whole * y.features, rest), y.Tokens(whole, 1).Slice(0, rest));
  }
}

// Its derivative is told by the output's sign.
template <typename A>
class ReluKernel final : public DeviceKernel<A> {
 public:
  ReluKernel(const ReluOp&, DeviceKernelContext<A>* context) : context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.in_place_inputs = 1;
    traits.reads_output = KernelTraits::OutputRead::kSign;
    traits.gradient_in_place = true;
    traits.any_layout = true;
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    if (operands.inputs[0].data != operands.output.data) {
      Copy<A>(context_->stream(), operands.inputs[0], operands.output);
    }
    BiasActivation<A>(context_->stream(), Activation::kRelu, nullptr, false, operands.output,
                      operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    ActivationBackward<A>(context_->stream(), Activation::kRelu, operands.output, operands.doutput,
                          operands.dinputs[0]);
  }

 private:
  DeviceKernelContext<A>* context_;
};

template <typename A>
class SliceKernel final : public DeviceKernel<A> {
 public:
  SliceKernel(const SliceOp& op, DeviceKernelContext<A>* context) : op_(op), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.adds_addend = true;
    traits.any_layout = true;
    traits.row_major_input = context_->regroups_inputs(op_.tokens);
    traits.row_major_dinput = context_->regroups_first_input(op_.tokens);
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    Copy<A>(context_->stream(), Slice(operands.inputs[0]), operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    const Activations<A> dx = operands.dinputs[0];
    const Activations<const A> addend = operands.addends[0];
    if (addend.data == nullptr) {
      Fill<A>(stream, 0, dx);
      Copy<A>(stream, operands.doutput, Slice(dx));
    } else {
      if (addend.data != dx.data) Copy<A>(stream, addend, dx);
      Add<A>(stream, Slice(dx), operands.doutput, Slice(dx));
    }
  }

 private:
  template <typename B>
  Activations<B> Slice(Activations<B> x) const {
    return x.WithTokens(op_.tokens)
        .Tokens(op_.first_token, op_.slice.tokens)
        .Slice(op_.first_column, op_.slice.width);
  }

  SliceOp op_;
  DeviceKernelContext<A>* context_;
};

template <typename A>
class SumPoolKernel final : public DeviceKernel<A> {
 public:
  SumPoolKernel(const SumPoolOp& op, DeviceKernelContext<A>* context)
      : tokens_(op.tokens), context_(context) {}

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_input = context_->regroups_inputs(tokens_);
    traits.row_major_dinput = context_->regroups_first_input(tokens_);
    return traits;
  }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    SumPool<A>(context_->stream(), operands.inputs[0].WithTokens(tokens_), operands.output);
  }
  void Backward(const KernelPass&, const BackwardOperands<A>& operands) override {
    SumPoolBackward<A>(context_->stream(), operands.doutput,
                       operands.dinputs[0].WithTokens(tokens_));
  }

 private:
  int64_t tokens_;
  DeviceKernelContext<A>* context_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(AddOp, AddKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(BlockTransposeOp, BlockTransposeKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(ConcatOp, ConcatKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(DropoutOp, DropoutKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(MeanPoolOp, MeanPoolKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(MultiplyOp, MultiplyKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(PadOp, PadKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(ReluOp, ReluKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(SliceOp, SliceKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(SumPoolOp, SumPoolKernel)

}  // namespace elastor::cuda
