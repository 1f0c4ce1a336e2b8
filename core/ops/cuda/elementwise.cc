// Kernels of ops without parameters: they call one or two kernels of
// core/kernels/cuda/elementwise.h.
#include "core/kernels/cuda/elementwise.h"

#include "core/base/random.h"
#include "core/ops/add.h"
#include "core/ops/block_transpose.h"
#include "core/ops/concat.h"
#include "core/ops/cuda/kernel.h"
#include "core/ops/dropout.h"
#include "core/ops/factorization_pool.h"
#include "core/ops/joint_logit.h"
#include "core/ops/mean_logit.h"
#include "core/ops/mean_pool.h"
#include "core/ops/multiply.h"
#include "core/ops/pad.h"
#include "core/ops/relu.h"
#include "core/ops/sigmoid_gate.h"
#include "core/ops/slice.h"
#include "core/ops/sum_pool.h"
#include "core/ops/upper_triangle.h"

namespace elastor::cuda {
namespace {

template <typename A>
void TransposeBlocks(Stream& stream, const BlockTransposeOp& op, Activations<const A> x,
                     Activations<A> y) {
  const auto each = [&](auto view) {
    return view.RowMajor(view.data, view.rows * op.count, 1, op.tokens * op.width);
  };
  BlockTranspose<A>(stream, op.tokens, op.width, each(x), each(y));
}

// What a slice takes of x.
template <typename U>
Activations<U> Sliced(const SliceOp& op, Activations<U> x) {
  return x.WithTokens(op.tokens)
      .Tokens(op.first_token, op.slice.tokens)
      .Slice(op.first_column, op.slice.width);
}

// The traits of a kernel that reads its first input as `tokens` tokens.
template <typename A>
KernelTraits TraitsWithTokens(const DeviceKernelContext<A>& context, int64_t tokens) {
  KernelTraits traits;
  traits.row_major_input = context.regroups_inputs(tokens);
  traits.row_major_dinput = context.regroups_first_input(tokens);
  return traits;
}

// The traits of a kernel that reads two inputs, value by value, as the output's tokens.
template <typename A>
KernelTraits TraitsOfPairs(const DeviceKernelContext<A>& context) {
  KernelTraits traits;
  traits.any_layout = true;
  traits.reads_inputs = 2;
  traits.row_major_input = traits.row_major_dinput =
      context.regroups_inputs(context.output().tokens);
  return traits;
}

}  // namespace

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const AddOp&, DeviceKernelContext<A>* context) {
  const int64_t tokens = context->output().tokens;
  KernelTraits traits;
  traits.in_place_inputs = 2;
  traits.any_layout = true;
  traits.row_major_input = context->regroups_inputs(tokens);
  // The inputs get it as it lies, as tokens of their own.
  traits.row_major_doutput =
      context->input(0).tokens != tokens || context->input(1).tokens != tokens;
  const auto forward = [context, tokens](const ForwardOperands<A>& o) {
    Add<A>(context->stream(), o.inputs[0].WithTokens(tokens), o.inputs[1].WithTokens(tokens),
           o.output);
  };
  return KernelOf<A>(traits, forward, NothingToCompute());
}

// Values are read as [rows, 1, features].
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const BlockTransposeOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.row_major_input = traits.row_major_output = true;
  traits.row_major_dinput = traits.row_major_doutput = true;
  const auto forward = [op, context](const ForwardOperands<A>& o) {
    TransposeBlocks<A>(context->stream(), op, o.inputs[0], o.output);
  };
  const auto backward = [op, context](const BackwardOperands<A>& o) {
    TransposeBlocks<A>(context->stream(), op, o.doutput, o.dinputs[0]);
  };
  return KernelOf<A>(traits, forward, backward);
}

// Values are read as [rows, 1, features].
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const ConcatOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.row_major_input = context->regroups_inputs(1);
  traits.row_major_output = traits.row_major_doutput = true;
  const auto forward = [first = op.first_features, context](const ForwardOperands<A>& o) {
    const Activations<A> y = o.output;
    Copy<A>(context->stream(), o.inputs[0].WithTokens(1), y.Slice(0, first));
    Copy<A>(context->stream(), o.inputs[1].WithTokens(1), y.Slice(first, y.features - first));
  };
  return KernelOf<A>(traits, forward, NothingToCompute());
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const DropoutOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.in_place_inputs = 1;
  traits.keeps_sign = true;
  traits.gradient_in_place = true;
  traits.any_layout = true;
  const uint64_t key = MakeRandomKey(context->options().seed, RandomPurpose::kDropout, op.layer);
  const auto apply = [context, key, rate = op.rate](const DevicePass& pass, Activations<const A> x,
                                                    Activations<A> y) {
    if (x.data != y.data) Copy<A>(context->stream(), x, y);
    if (pass.training) Dropout<A>(context->stream(), pass.Dropout(key, rate), y);
  };
  const auto forward = [apply](const DevicePass& pass, const ForwardOperands<A>& o) {
    apply(pass, o.inputs[0], o.output);
  };
  const auto backward = [apply](const KernelPass& pass, const BackwardOperands<A>& o) {
    apply(pass, o.doutput, o.dinputs[0]);
  };
  return KernelOf<A>(traits, forward, backward);
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const FactorizationPoolOp& op,
                                                  DeviceKernelContext<A>* context) {
  const int64_t tokens = op.tokens;
  const auto forward = [context, tokens](const ForwardOperands<A>& o) {
    FactorizationPool<A>(context->stream(), o.inputs[0].WithTokens(tokens), o.output);
  };
  const auto backward = [context, tokens](const BackwardOperands<A>& o) {
    FactorizationPoolBackward<A>(context->stream(), o.inputs[0].WithTokens(tokens), o.doutput,
                                 o.dinputs[0].WithTokens(tokens));
  };
  KernelTraits traits = TraitsWithTokens(*context, tokens);
  traits.reads_inputs = 1;
  return KernelOf<A>(traits, forward, backward);
}

// Values are read as [rows, 1, 2].
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const JointLogitOp&,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits = TraitsWithTokens(*context, 1);
  traits.reads_inputs = 1;
  const auto forward = [context](const ForwardOperands<A>& o) {
    const auto x = o.inputs[0].WithTokens(1);
    if (o.logits.data != nullptr) {
      JointLogit<A>(context->stream(), x, o.logits);
    } else {
      JointLogit<A>(context->stream(), x, o.output);
    }
  };
  const auto backward = [context](const BackwardOperands<A>& o) {
    JointLogitBackward<A>(context->stream(), o.inputs[0].WithTokens(1), o.doutput,
                          o.dinputs[0].WithTokens(1));
  };
  return KernelOf<A>(traits, forward, backward);
}

// Values are read as [rows, 1, features].
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const MeanLogitOp&,
                                                  DeviceKernelContext<A>* context) {
  const auto forward = [context](const ForwardOperands<A>& o) {
    const auto x = o.inputs[0].WithTokens(1);
    if (o.logits.data != nullptr) {
      MeanLogit<A>(context->stream(), x, o.logits);
    } else {
      MeanLogit<A>(context->stream(), x, o.output);
    }
  };
  const auto backward = [context](const BackwardOperands<A>& o) {
    MeanLogitBackward<A>(context->stream(), o.doutput, o.dinputs[0].WithTokens(1));
  };
  return KernelOf<A>(TraitsWithTokens(*context, 1), forward, backward);
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const MeanPoolOp& op,
                                                  DeviceKernelContext<A>* context) {
  const int64_t tokens = op.tokens;
  const auto forward = [context, tokens](const ForwardOperands<A>& o) {
    MeanPool<A>(context->stream(), o.inputs[0].WithTokens(tokens), o.output);
  };
  const auto backward = [context, tokens](const BackwardOperands<A>& o) {
    MeanPoolBackward<A>(context->stream(), o.doutput, o.dinputs[0].WithTokens(tokens));
  };
  return KernelOf<A>(TraitsWithTokens(*context, tokens), forward, backward);
}

// Values are read as the first input's tokens.
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const MultiplyOp&,
                                                  DeviceKernelContext<A>* context) {
  const int64_t tokens = context->output().tokens;
  const auto forward = [context, tokens](const ForwardOperands<A>& o) {
    Multiply<A>(context->stream(), o.inputs[0].WithTokens(tokens), o.inputs[1].WithTokens(tokens),
                o.output);
  };
  const auto backward = [context, tokens](const BackwardOperands<A>& o) {
    for (const int i : {0, 1}) {
      Multiply<A>(context->stream(), o.doutput, o.inputs[1 - i].WithTokens(tokens),
                  o.dinputs[i].WithTokens(tokens));
    }
  };
  return KernelOf<A>(TraitsOfPairs(*context), forward, backward);
}

// The input is read as [rows, 1, features] and copied token by token, into any layout; where
// nothing is padded and the layouts are alike, it is not copied.
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const PadOp&, DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.repeats_input = context->input(0).features() == context->output().features();
  traits.row_major_input = context->regroups_inputs(1);
  traits.row_major_doutput = true;
  const auto forward = [context](const ForwardOperands<A>& o) {
    Stream& stream = context->stream();
    const Activations<const A> x = o.inputs[0].WithTokens(1);
    const Activations<A> y = o.output;
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
  };
  return KernelOf<A>(traits, forward, NothingToCompute());
}

// Its derivative is told by the output's sign.
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const ReluOp&, DeviceKernelContext<A>* context) {
  KernelTraits traits;
  traits.in_place_inputs = 1;
  traits.reads_output = KernelTraits::OutputRead::kSign;
  traits.gradient_in_place = true;
  traits.any_layout = true;
  const auto forward = [context](const ForwardOperands<A>& o) {
    if (o.inputs[0].data != o.output.data) Copy<A>(context->stream(), o.inputs[0], o.output);
    BiasActivation<A>(context->stream(), Activation::kRelu, nullptr, false, o.output, o.output);
  };
  const auto backward = [context](const BackwardOperands<A>& o) {
    ActivationBackward<A>(context->stream(), Activation::kRelu, o.output, o.doutput, o.dinputs[0]);
  };
  return KernelOf<A>(traits, forward, backward);
}

// Values are read as the first input's tokens.
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const SigmoidGateOp&,
                                                  DeviceKernelContext<A>* context) {
  const int64_t tokens = context->output().tokens;
  const auto forward = [context, tokens](const ForwardOperands<A>& o) {
    SigmoidGate<A>(context->stream(), o.inputs[0].WithTokens(tokens),
                   o.inputs[1].WithTokens(tokens), o.output);
  };
  const auto backward = [context, tokens](const BackwardOperands<A>& o) {
    SigmoidGateBackward<A>(context->stream(), o.inputs[0].WithTokens(tokens),
                           o.inputs[1].WithTokens(tokens), o.doutput,
                           o.dinputs[0].WithTokens(tokens), o.dinputs[1].WithTokens(tokens));
  };
  return KernelOf<A>(TraitsOfPairs(*context), forward, backward);
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const SliceOp& op,
                                                  DeviceKernelContext<A>* context) {
  KernelTraits traits = TraitsWithTokens(*context, op.tokens);
  traits.adds_addend = true;
  traits.any_layout = true;
  const auto forward = [op, context](const ForwardOperands<A>& o) {
    Copy<A>(context->stream(), Sliced(op, o.inputs[0]), o.output);
  };
  const auto backward = [op, context](const BackwardOperands<A>& o) {
    Stream& stream = context->stream();
    const Activations<A> dx = o.dinputs[0];
    const Activations<const A> addend = o.addends[0];
    if (addend.data == nullptr) {
      Fill<A>(stream, 0, dx);
      Copy<A>(stream, o.doutput, Sliced(op, dx));
    } else {
      if (addend.data != dx.data) Copy<A>(stream, addend, dx);
      Add<A>(stream, Sliced(op, dx), o.doutput, Sliced(op, dx));
    }
  };
  return KernelOf<A>(traits, forward, backward);
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const SumPoolOp& op,
                                                  DeviceKernelContext<A>* context) {
  const int64_t tokens = op.tokens;
  const auto forward = [context, tokens](const ForwardOperands<A>& o) {
    SumPool<A>(context->stream(), o.inputs[0].WithTokens(tokens), o.output);
  };
  const auto backward = [context, tokens](const BackwardOperands<A>& o) {
    SumPoolBackward<A>(context->stream(), o.doutput, o.dinputs[0].WithTokens(tokens));
  };
  return KernelOf<A>(TraitsWithTokens(*context, tokens), forward, backward);
}

template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const UpperTriangleOp& op,
                                                  DeviceKernelContext<A>* context) {
  const int64_t size = op.size;
  const auto forward = [context, size](const ForwardOperands<A>& o) {
    UpperTriangle<A>(context->stream(), o.inputs[0].WithTokens(size), o.output);
  };
  const auto backward = [context, size](const BackwardOperands<A>& o) {
    UpperTriangleBackward<A>(context->stream(), o.doutput, o.dinputs[0].WithTokens(size));
  };
  return KernelOf<A>(TraitsWithTokens(*context, size), forward, backward);
}

ELASTOR_INSTANTIATE_DEVICE_KERNEL(AddOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(BlockTransposeOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(ConcatOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(DropoutOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(FactorizationPoolOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(JointLogitOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(MeanLogitOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(MeanPoolOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(MultiplyOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(PadOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(ReluOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(SigmoidGateOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(SliceOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(SumPoolOp)
ELASTOR_INSTANTIATE_DEVICE_KERNEL(UpperTriangleOp)

}  // namespace elastor::cuda
