#include "core/ops/linear.h"

#include "core/kernels/cuda/elementwise.h"
#include "core/ops/cuda/kernel.h"
#include "core/ops/cuda/linear_products.h"

namespace elastor::cuda {
namespace {

// The maps are applied to tokens of `problems`: those of the value where tokens have weights of
// their own; else all tokens of all rows are rows of one product, interleaved ones after [rows, in,
// T] has been transposed to [rows, T, in].
template <typename A>
class LinearKernel final : public DeviceKernel<A> {
 public:
  LinearKernel(const LinearOp& op, DeviceKernelContext<A>* context);

  KernelTraits traits() const override;
  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override;
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override;

 private:
  static constexpr int kWeight = 0;
  static constexpr int kBias = 1;

  bool own() const { return op_.weights == LinearOp::Weights::kOwn && op_.tokens > 1; }
  bool interleaved() const {
    return op_.weights == LinearOp::Weights::kInterleaved && op_.tokens > 1;
  }
  // Whether the derivative of the activation is read off the output, as it lies.
  bool by_sign() const { return op_.activation == Activation::kRelu && !interleaved(); }
  // Returns the view of `value`, which has `width` features a token, that the matrix products work
  // on.
  template <typename T>
  Activations<T> Problems(Activations<T> value, int64_t width) const;
  // The input of the maps, x; interleaved: its transpose, which Forward has made.
  Activations<const A> Input(const DevicePass& pass, Activations<const A> x) const {
    return Problems<const A>(interleaved() ? context_->At(pass, transposed_x_) : x, op_.in);
  }
  template <typename Out>
  void Multiply(const DevicePass& pass, Activations<const A> x, Activations<Out> z,
                Activations<Out> y);
  // The gradient before the activation; interleaved: of transposes.
  Activations<const A> BeforeActivation(const DevicePass& pass, const BackwardOperands<A>& operands,
                                        Activations<const A> dy);

  using View = typename DeviceKernelContext<A>::View;

  LinearOp op_;
  DeviceKernelContext<A>* context_;
  LinearProducts<A> products_;
  int bias_sums_ = -1;
  // Interleaved: the transposes of x, y and their gradients.
  View transposed_x_;
  View transposed_y_;
  View transposed_dy_;
  View transposed_dx_;
  // With an activation: what is before it (interleaved: transposed), kept unless by_sign(); then
  // its gradient.
  View z_;
};

template <typename A>
LinearKernel<A>::LinearKernel(const LinearOp& op, DeviceKernelContext<A>* context)
    : op_(op), context_(context), products_(context, kWeight, op.maps(), op.out, op.in) {
  const Shape in = {op.tokens, op.in};
  const Shape out = {op.tokens, op.out};
  const TokenLayout layout = own() ? TokenLayout::kTokenMajor : TokenLayout::kRowMajor;
  if (op.bias) {
    bias_sums_ = context->ReserveColumnSums(op.maps() * op.out, op.tokens / op.maps());
  }
  if (interleaved()) {
    transposed_x_ = context->Reserve(DeviceLife::kKept, layout, in);
    transposed_y_ = context->Reserve(DeviceLife::kForward, layout, out);
    transposed_dy_ = context->Reserve(DeviceLife::kBackward, layout, out);
    transposed_dx_ = context->Reserve(DeviceLife::kBackward, layout, in);
  }
  if (op.activation != Activation::kIdentity) {
    z_ = context->Reserve(by_sign() ? DeviceLife::kBackward : DeviceLife::kKept, layout, out);
  }
}

template <typename A>
KernelTraits LinearKernel<A>::traits() const {
  KernelTraits traits;
  traits.reads_inputs = interleaved() ? 0 : 1;
  if (by_sign()) traits.reads_output = KernelTraits::OutputRead::kSign;
  traits.wants_token_major = own();
  traits.row_major_input = !own() || context_->regroups_inputs(op_.tokens);
  traits.row_major_output = traits.row_major_doutput = !own();
  traits.own_doutput = op_.maps() < op_.tokens && !interleaved();
  // The gradient of one map with one output is an outer product: written in any layout at no cost.
  traits.row_major_dinput =
      own() ? context_->regroups_first_input(op_.tokens) : op_.tokens > 1 || op_.out > 1;
  return traits;
}

template <typename A>
template <typename T>
Activations<T> LinearKernel<A>::Problems(Activations<T> value, int64_t width) const {
  if (op_.maps() == op_.tokens) return value.WithTokens(op_.tokens);
  CHECK(value.row_major());
  return Activations<T>::RowMajor(value.data, value.rows * op_.tokens, 1, width);
}

template <typename A>
template <typename Out>
void LinearKernel<A>::Multiply(const DevicePass& pass, Activations<const A> x, Activations<Out> z,
                               Activations<Out> y) {
  const float* bias = op_.bias ? context_->values(kBias) : nullptr;
  typename LinearProducts<A>::Epilogue epilogue;
  if (op_.maps() == 1) std::swap(epilogue.bias, bias);
  epilogue.relu = epilogue.bias != nullptr && by_sign();
  const bool done = epilogue.relu || (bias == nullptr && op_.activation == Activation::kIdentity);
  products_.Forward(pass, x, done ? y : z, epilogue);
  if (!done) BiasActivation<Out>(context_->stream(), op_.activation, bias, false, z, y);
}

template <typename A>
void LinearKernel<A>::Forward(const DevicePass& pass, const ForwardOperands<A>& operands) {
  Stream& stream = context_->stream();
  const Activations<const A> x = operands.inputs[0];
  if (interleaved()) {
    TransposeFeatures<A>(stream, op_.in, op_.tokens, x.WithTokens(1),
                         context_->At(pass, transposed_x_).WithTokens(1));
  }
  const Activations<const A> problems = Input(pass, x);
  if (operands.logits.data != nullptr) {
    CHECK(!interleaved());
    const Activations<float> y = Problems(operands.logits, op_.out);
    Multiply(pass, problems, y, y);
    if (context_->inputs() > 1) AddTo<A>(stream, operands.inputs[1].WithTokens(y.tokens), y);
    return;
  }
  CHECK_EQ(context_->inputs(), 1) << "a residual";
  const Activations<A> result =
      Problems(interleaved() ? context_->At(pass, transposed_y_) : operands.output, op_.out);
  const bool saved = !z_.empty() && !by_sign();
  Multiply(pass, problems, saved ? Problems(context_->At(pass, z_), op_.out) : result, result);
  if (interleaved()) {
    TransposeFeatures<A>(stream, op_.tokens, op_.out,
                         context_->At(pass, transposed_y_).WithTokens(1),
                         operands.output.WithTokens(1));
  }
}

template <typename A>
Activations<const A> LinearKernel<A>::BeforeActivation(const DevicePass& pass,
                                                       const BackwardOperands<A>& operands,
                                                       Activations<const A> dy) {
  if (z_.empty()) return dy;
  const Activations<A> z = context_->At(pass, z_);
  ActivationBackward<A>(context_->stream(), op_.activation, by_sign() ? operands.output : z, dy, z);
  return z;
}

template <typename A>
void LinearKernel<A>::Backward(const KernelPass& pass, const BackwardOperands<A>& operands) {
  Stream& stream = context_->stream();
  Activations<const A> dy = operands.doutput;
  if (interleaved()) {
    const Activations<A> transposed = context_->At(pass, transposed_dy_);
    TransposeFeatures<A>(stream, op_.out, op_.tokens, dy.WithTokens(1), transposed.WithTokens(1));
    dy = transposed;
  }
  dy = Problems(BeforeActivation(pass, operands, dy), op_.out);
  products_.WeightGradient(pass, dy, Input(pass, operands.inputs[0]));
  if (op_.bias) DeliverBias<A>(context_, pass, kBias, dy, bias_sums_);
  const Activations<A> dx = operands.dinputs[0];
  if (interleaved()) {
    const Activations<A> transposed = context_->At(pass, transposed_dx_);
    products_.InputGradient(pass, dy, Problems(transposed, op_.in), Store::kOverwrite);
    TransposeFeatures<A>(stream, op_.tokens, op_.in, transposed.WithTokens(1), dx.WithTokens(1));
  } else if (op_.tokens == 1 && !dx.rows_together()) {  // cut into dx's tokens
    products_.InputGradient(pass, dy, dx, Store::kOverwrite);
  } else {
    products_.InputGradient(pass, dy, Problems(dx, op_.in), Store::kOverwrite);
  }
}

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(LinearOp, LinearKernel)

}  // namespace elastor::cuda
