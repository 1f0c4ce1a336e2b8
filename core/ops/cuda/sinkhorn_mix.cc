#include "core/ops/sinkhorn_mix.h"

#include <type_traits>

#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/cuda/sinkhorn.h"
#include "core/ops/cuda/kernel.h"
#include "core/ops/cuda/linear_products.h"

namespace elastor::cuda {
namespace {

// The matrices are computed by every forward pass and kept. Between blocks, one matrix is applied
// to all columns of all rows, after [rows, M, c] has been transposed to [rows, c, M].
template <typename A>
class SinkhornMixKernel final : public DeviceKernel<A> {
 public:
  SinkhornMixKernel(const SinkhornMixOp& op, DeviceKernelContext<A>* context)
      : op_(op),
        shape_(op.matrices()),
        context_(context),
        products_(context, shape_.count, shape_.size, shape_.size) {
    const auto floats = [](int64_t count) { return count * static_cast<int64_t>(sizeof(float)); };
    const int64_t matrices = floats(shape_.elements());
    const int64_t vectors = floats(shape_.count * shape_.size);
    scores_ = context->Reserve(DeviceLife::kKept, {.once = matrices});
    vectors_ = context->Reserve(DeviceLife::kKept, {.once = vectors * shape_.vectors()});
    matrices_ = context->Reserve(DeviceLife::kKept, {.once = matrices});
    if (kRounded) factors_ = context->Reserve(DeviceLife::kKept, {.once = matrices / 2});
    dmatrices_ = context->Reserve(DeviceLife::kBackward, {.leaf = matrices});
    dvectors_ = context->Reserve(DeviceLife::kBackward, {.leaf = 2 * vectors});
    if (op.rank > 0) dlogits_ = context->Reserve(DeviceLife::kBackward, {.leaf = matrices});
    if (op.within()) return;
    const Shape transposed = {op.width, op.blocks};
    const auto reserve = [&](DeviceLife life) {
      return context->Reserve(life, TokenLayout::kRowMajor, transposed);
    };
    transposed_x_ = reserve(DeviceLife::kKept);
    transposed_y_ = reserve(DeviceLife::kForward);
    transposed_dy_ = reserve(DeviceLife::kBackward);
    transposed_dx_ = reserve(DeviceLife::kBackward);
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = op_.within() ? 1 : 0;
    traits.wants_token_major = op_.within();
    traits.row_major_input = !op_.within() || context_->regroups_inputs(op_.blocks);
    traits.row_major_output = traits.row_major_doutput = !op_.within();
    traits.row_major_dinput = !op_.within() || context_->regroups_first_input(op_.blocks);
    return traits;
  }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    SinkhornMatrices<A>(stream, shape_, Logits(), State(),
                        kRounded ? context_->template Data<A>(factors_) : nullptr);
    SetWeights();
    const Activations<const A> x = operands.inputs[0];
    if (op_.within()) {
      return products_.template Forward<A>(pass, x.WithTokens(op_.blocks), operands.output, {});
    }
    TransposeFeatures<A>(stream, op_.blocks, op_.width, x.WithTokens(1),
                         context_->At(pass, transposed_x_).WithTokens(1));
    products_.template Forward<A>(pass, Problems(pass, transposed_x_),
                                  Problems(pass, transposed_y_), {});
    TransposeFeatures<A>(stream, op_.width, op_.blocks,
                         context_->At(pass, transposed_y_).WithTokens(1),
                         operands.output.WithTokens(1));
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    SetWeights();
    Activations<const A> dy = operands.doutput;
    Activations<const A> x = operands.inputs[0];
    if (op_.within()) {
      x = x.WithTokens(op_.blocks);
    } else {
      TransposeFeatures<A>(stream, op_.blocks, op_.width, dy.WithTokens(1),
                           context_->At(pass, transposed_dy_).WithTokens(1));
      dy = Problems(pass, transposed_dy_);
      x = Problems(pass, transposed_x_);
    }
    DeliverGradients(pass, dy, x);
    const Activations<A> dx = operands.dinputs[0];
    if (op_.within()) {
      return products_.InputGradient(pass, dy, dx.WithTokens(op_.blocks), Store::kOverwrite);
    }
    products_.InputGradient(pass, dy, Problems(pass, transposed_dx_), Store::kOverwrite);
    TransposeFeatures<A>(stream, op_.width, op_.blocks,
                         context_->At(pass, transposed_dx_).WithTokens(1), dx.WithTokens(1));
  }

 private:
  static constexpr bool kRounded = !std::is_same_v<A, float>;
  using View = typename DeviceKernelContext<A>::View;

  SinkhornLogits Logits() const {
    if (op_.rank == 0) return {context_->values(0)};
    return {context_->values(0), context_->values(1), op_.blocks, op_.rank, op_.columns()};
  }
  SinkhornState State() const {
    return {context_->template Data<float>(scores_), context_->template Data<float>(vectors_),
            context_->template Data<float>(matrices_)};
  }
  void SetWeights() {
    products_.SetWeights(context_->template Data<A>(kRounded ? factors_ : matrices_));
  }
  // All columns of all rows.
  Activations<A> Problems(const DevicePass& pass, const View& view) const {
    const Activations<A> value = context_->At(pass, view);
    return Activations<A>::RowMajor(value.data, value.rows * op_.width, 1, op_.blocks);
  }

  void DeliverGradients(const KernelPass& pass, Activations<const A> dy, Activations<const A> x) {
    Stream& stream = context_->stream();
    const int64_t leaves = pass.shape.leaves;
    const LeafGradients::Target dw = {context_->template Data<float>(dmatrices_),
                                      leaves * shape_.matrix(), shape_.matrix()};
    products_.WeightGradient(pass, dy, x, dw);
    const SinkhornLeaves dmatrices = {dw.data, dw.map_stride, dw.leaf_stride};
    float* const vectors = context_->template Data<float>(dvectors_);
    const bool factors = op_.rank > 0;
    const LeafGradients::Target first = context_->Open(pass, 0, factors ? 1 : shape_.count);
    SinkhornLeaves dlogits = {first.data, first.map_stride, first.leaf_stride};
    if (factors) {
      dlogits = {context_->template Data<float>(dlogits_), shape_.matrix(), shape_.elements()};
    }
    SinkhornGradients(stream, shape_, State(), leaves, dmatrices, vectors, dlogits);
    if (factors) {
      const LeafGradients::Target second = context_->Open(pass, 1, 1);
      SinkhornFactorGradients(stream, Logits(), leaves, dlogits.data, first.data, first.leaf_stride,
                              second.data, second.leaf_stride);
      context_->Close(pass, 1);
    }
    context_->Close(pass, 0);
  }

  SinkhornMixOp op_;
  SinkhornShape shape_;
  DeviceKernelContext<A>* context_;
  LinearProducts<A> products_;
  int scores_;
  int vectors_;
  int matrices_;
  int factors_ = -1;  // the matrices, rounded to A
  int dmatrices_;     // [count][leaves][size][size]
  int dvectors_;
  int dlogits_ = -1;  // with a rank: [leaves][count][size][size]
  // Between blocks: the transposes of x, y and their gradients.
  View transposed_x_;
  View transposed_y_;
  View transposed_dy_;
  View transposed_dx_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(SinkhornMixOp, SinkhornMixKernel)

}  // namespace elastor::cuda
