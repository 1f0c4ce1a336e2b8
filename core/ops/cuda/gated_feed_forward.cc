#include "core/ops/gated_feed_forward.h"

#include <memory>
#include <type_traits>

#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/cuda/gated_network.h"
#include "core/ops/cuda/kernel.h"
#include "core/ops/cuda/linear_products.h"

namespace elastor::cuda {
namespace {

template <typename A>
KernelTraits TokenTraits(const DeviceKernelContext<A>& context, int64_t tokens) {
  KernelTraits traits;
  traits.reads_inputs = 1;
  traits.wants_token_major = true;
  traits.row_major_input = context.regroups_inputs(tokens);
  traits.row_major_dinput = context.regroups_first_input(tokens);
  return traits;
}

// Eq. 4 as one kernel forward and one backward, between which nothing is kept.
template <typename A>
class FusedGatedKernel final : public DeviceKernel<A> {
 public:
  FusedGatedKernel(const GatedNetwork& network, DeviceKernelContext<A>* context)
      : network_(network),
        context_(context),
        scratch_(context->Reserve(
            DeviceLife::kBackward,
            {.once = GatedScratchFloats(network) * static_cast<int64_t>(sizeof(float))})) {}

  KernelTraits traits() const override { return TokenTraits(*context_, network_.tokens); }
  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    GatedNetworkForward<A>(context_->stream(), network_, Weights(),
                           operands.inputs[0].WithTokens(network_.tokens), operands.output);
  }
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    const auto open = [&](int parameter) -> LeafTarget {
      const LeafGradients::Target target = context_->Open(pass, parameter, network_.tokens);
      return {target.data, target.map_stride, target.leaf_stride};
    };
    const GatedGradients gradients = {open(kUp), open(kDown), open(kResidual)};
    GatedNetworkBackward<A>(context_->stream(), network_, Weights(), pass.shape,
                            context_->options().canonical_leaves,
                            operands.inputs[0].WithTokens(network_.tokens), operands.doutput,
                            operands.dinputs[0].WithTokens(network_.tokens), gradients,
                            context_->template Data<float>(scratch_));
    for (const int parameter : {kResidual, kDown, kUp}) context_->Close(pass, parameter);
  }

 private:
  static constexpr int kUp = 0;
  static constexpr int kDown = 1;
  static constexpr int kResidual = 2;

  GatedWeights<A> Weights() const {
    return {context_->factors(kUp), context_->factors(kDown), context_->factors(kResidual)};
  }

  GatedNetwork network_;
  DeviceKernelContext<A>* context_;
  int scratch_;
};

// Both gated networks by products: the up-projections as one, the gate, then the down-projection
// and the residual map into one output.
template <typename A, typename Op>
class GatedKernel final : public DeviceKernel<A> {
 public:
  GatedKernel(const Op& op, DeviceKernelContext<A>* context);

  KernelTraits traits() const override { return TokenTraits(*context_, op_.tokens); }
  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override;
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override;

 private:
  static constexpr bool kBiases = std::is_same_v<Op, GatedSumFeedForwardOp>;
  static constexpr int kUpProjections = kBiases ? 3 : 2;
  // Parameters; a weight's bias comes after it.
  static constexpr int kUp = 0;
  static constexpr int kDown = kBiases ? 2 : 1;
  static constexpr int kResidual = kBiases ? 4 : 2;

  void AddOutputBiases(Activations<A> y);
  void DeliverOutputBiases(const KernelPass& pass, Activations<const A> dy);

  Op op_;
  DeviceKernelContext<A>* context_;
  LinearProducts<A> up_;
  LinearProducts<A> down_;
  LinearProducts<A> residual_;
  typename DeviceKernelContext<A>::View projected_;  // [T, kUpProjections H]; then its gradient
  typename DeviceKernelContext<A>::View h_;          // [T, H]
  typename DeviceKernelContext<A>::View dh_;
  // With biases.
  int output_bias_ = -1;  // w + s, [T, D]
  int up_bias_sums_ = -1;
  int output_bias_sums_ = -1;
};

template <typename A, typename Op>
GatedKernel<A, Op>::GatedKernel(const Op& op, DeviceKernelContext<A>* context)
    : op_(op),
      context_(context),
      up_(context, kUp, op.tokens, kUpProjections * op.hidden, op.width),
      down_(context, kDown, op.tokens, op.width, op.hidden),
      residual_(context, kResidual, op.tokens, op.width, op.width) {
  const auto reserve = [&](DeviceLife life, int64_t width) {
    return context->Reserve(life, TokenLayout::kTokenMajor, {op.tokens, width});
  };
  projected_ = reserve(DeviceLife::kKept, kUpProjections * op.hidden);
  h_ = reserve(DeviceLife::kKept, op.hidden);
  dh_ = reserve(DeviceLife::kBackward, op.hidden);
  if constexpr (kBiases) {
    const int64_t outputs = op.tokens * op.width;
    output_bias_ = context->Reserve(DeviceLife::kForward,
                                    {.once = outputs * static_cast<int64_t>(sizeof(float))});
    up_bias_sums_ = context->ReserveColumnSums(op.tokens * kUpProjections * op.hidden);
    output_bias_sums_ = context->ReserveColumnSums(outputs);
  }
}

template <typename A, typename Op>
void GatedKernel<A, Op>::Forward(const DevicePass& pass, const ForwardOperands<A>& operands) {
  const Activations<const A> x = operands.inputs[0].WithTokens(op_.tokens);
  const Activations<A> y = operands.output;
  const Activations<A> projected = context_->At(pass, projected_);
  const Activations<A> h = context_->At(pass, h_);
  up_.Forward(pass, x, projected, {});
  if constexpr (kBiases) {
    GatedSumUnit<A>(context_->stream(), op_.activation, context_->values(kUp + 1), projected, h);
  } else {
    GatedUnit<A>(context_->stream(), op_.activation, projected, h);
  }
  down_.template Forward<A>(pass, h, y, {});
  residual_.Forward(pass, x, y, {.store = Store::kAdd});
  if constexpr (kBiases) AddOutputBiases(y);
}

template <typename A, typename Op>
void GatedKernel<A, Op>::AddOutputBiases(Activations<A> y) {
  const auto bias = [&](auto* values) {
    return Activations<std::remove_pointer_t<decltype(values)>>::RowMajor(values, 1, op_.tokens,
                                                                          op_.width);
  };
  float* const sum = context_->template Data<float>(output_bias_);
  Add<float>(context_->stream(), bias(context_->values(kDown + 1)),
             bias(context_->values(kResidual + 1)), bias(sum));
  BiasActivation<A>(context_->stream(), Activation::kIdentity, sum, false, y, y);
}

template <typename A, typename Op>
void GatedKernel<A, Op>::Backward(const KernelPass& pass, const BackwardOperands<A>& operands) {
  const Activations<const A> x = operands.inputs[0].WithTokens(op_.tokens);
  const Activations<const A> dy = operands.doutput;
  const Activations<A> dx = operands.dinputs[0].WithTokens(op_.tokens);
  const Activations<A> projected = context_->At(pass, projected_);
  const Activations<A> dprojected = projected;
  const Activations<A> dh = context_->At(pass, dh_);
  down_.InputGradient(pass, dy, dh, Store::kOverwrite);
  if constexpr (kBiases) {
    GatedSumUnitBackward<A>(context_->stream(), op_.activation, context_->values(kUp + 1),
                            projected, dh, dprojected);
    DeliverOutputBiases(pass, dy);
  } else {
    GatedUnitBackward<A>(context_->stream(), op_.activation, projected, dh, dprojected);
  }
  residual_.WeightGradient(pass, dy, x);
  down_.WeightGradient(pass, dy, context_->At(pass, h_));
  if constexpr (kBiases) DeliverBias<A>(context_, pass, kUp + 1, dprojected, up_bias_sums_);
  up_.WeightGradient(pass, dprojected, x);
  up_.InputGradient(pass, dprojected, dx, Store::kOverwrite);
  residual_.InputGradient(pass, dy, dx, Store::kAdd);
}

template <typename A, typename Op>
void GatedKernel<A, Op>::DeliverOutputBiases(const KernelPass& pass, Activations<const A> dy) {
  // w and s have the same gradient, the sum of dy.
  const LeafGradients::Target ddown = context_->Open(pass, kDown + 1, op_.tokens);
  const LeafGradients::Target dresidual = context_->Open(pass, kResidual + 1, op_.tokens);
  LeafColumnSums<A>(context_->stream(), pass.shape, dy, ddown.data, ddown.map_stride,
                    ddown.leaf_stride, context_->template Data<float>(output_bias_sums_));
  Copy(context_->stream(), dresidual.data, ddown.data, pass.shape.leaves * op_.tokens * op_.width);
  context_->Close(pass, kResidual + 1);
  context_->Close(pass, kDown + 1);
}

template <typename A>
using GatedSumFeedForwardKernel = GatedKernel<A, GatedSumFeedForwardOp>;

}  // namespace

// By products where a token's weights are too large.
template <typename A>
std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const GatedFeedForwardOp& op,
                                                  DeviceKernelContext<A>* context) {
  const DeviceModelOptions& options = context->options();
  const GatedNetwork network = {op.tokens, op.width, op.hidden, op.activation, options.precision};
  if (options.fused_network && FitsMultiprocessor(network)) {
    return std::make_unique<FusedGatedKernel<A>>(network, context);
  }
  return std::make_unique<GatedKernel<A, GatedFeedForwardOp>>(op, context);
}
ELASTOR_INSTANTIATE_DEVICE_KERNEL(GatedFeedForwardOp)
ELASTOR_DEFINE_DEVICE_KERNEL(GatedSumFeedForwardOp, GatedSumFeedForwardKernel)

}  // namespace elastor::cuda
