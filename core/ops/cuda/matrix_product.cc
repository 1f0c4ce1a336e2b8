#include "core/kernels/cuda/matrix_product.h"

#include "core/kernels/cuda/elementwise.h"
#include "core/ops/cuda/kernel.h"
#include "core/ops/matrix_product.h"
#include "core/ops/position.h"

namespace elastor::cuda {
namespace {

template <typename A>
class MatrixProductKernel final : public DeviceKernel<A> {
 public:
  MatrixProductKernel(const MatrixProductOp& op, DeviceKernelContext<A>* context)
      : op_(op), product_(op.product), context_(context) {
    if (op.activation != Activation::kIdentity) {
      z_ = context->Reserve(DeviceLife::kKept, TokenLayout::kRowMajor,
                            {1, product_.count * op.output_features()});
    }
    if (op.shared == Shared::kNone) return;
    size_ = op.shared == Shared::kFirst ? op.first_features() : op.second_features();
    CHECK_EQ(context->size(0), size_);
    row_gradients_ = context->Reserve(DeviceLife::kBackward,
                                      {.row = size_ * static_cast<int64_t>(sizeof(float))});
    sums_ = context->ReserveColumnSums(size_);
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.reads_inputs = 2;
    traits.row_major_input = traits.row_major_output = true;
    traits.row_major_dinput = traits.row_major_doutput = true;
    return traits;
  }

  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    const Activations<A> y = operands.output.WithTokens(1);
    const Activations<A> z = z_.empty() ? y : context_->At(pass, z_);
    MatrixProducts<A, A>(context_->stream(), y.rows, product_, First(operands.inputs),
                         Second(operands.inputs), Product(z));
    if (z_.empty()) return;
    BiasActivation<A>(context_->stream(), op_.activation, nullptr, false, z, y);
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    Activations<const A> dz = operands.doutput.WithTokens(1);
    if (!z_.empty()) {
      const Activations<A> z = context_->At(pass, z_);
      ActivationBackward<A>(stream, op_.activation, z, dz, z);
      dz = z;
    }
    const auto dy = Product(dz);
    const auto [count, m, n, k] = product_;
    const ProductShape of_first = {count, m, k, n};
    const ProductShape of_second = {count, k, n, m};
    const auto a = First(operands.inputs).Transposed();
    const auto b = Second(operands.inputs).Transposed();
    if (op_.shared == Shared::kSecond) {
      MatrixProducts<A, float>(stream, dz.rows, of_second, a, dy, SecondLaid(RowGradients()));
    } else {
      MatrixProducts<A, A>(stream, dz.rows, of_second, a, dy,
                           SecondLaid(Of(operands.dinputs[Input(kSecond)])));
    }
    if (op_.shared == Shared::kFirst) {
      MatrixProducts<A, float>(stream, dz.rows, of_first, dy, b, FirstLaid(RowGradients()));
    } else {
      MatrixProducts<A, A>(stream, dz.rows, of_first, dy, b, FirstLaid(Of(operands.dinputs[0])));
    }
    if (op_.shared == Shared::kNone) return;
    const LeafGradients::Target target = context_->Open(pass, 0, 1);
    LeafColumnSums<float>(
        stream, pass.shape,
        Activations<const float>(Activations<float>::RowMajor(
            context_->template Data<float>(row_gradients_), pass.shape.rows(), 1, size_)),
        target.data, target.map_stride, target.leaf_stride, context_->template Data<float>(sums_));
    context_->Close(pass, 0);
  }

 private:
  using Shared = MatrixProductOp::Shared;
  static constexpr int kSecond = 1;

  int Input(int factor) const { return op_.shared == Shared::kFirst ? 0 : factor; }
  template <typename B>
  static DeviceMatrices<B> Of(const Activations<B>& view) {
    return {view.data, view.row_stride};
  }
  DeviceMatrices<float> RowGradients() const {
    return {context_->template Data<float>(row_gradients_), size_};
  }

  template <typename B>
  static DeviceMatrices<B> Laid(DeviceMatrices<B> of, int64_t rows, int64_t columns,
                                bool transposed, bool shared) {
    of.step = shared ? 0 : rows * columns;
    of.row_step = transposed ? 1 : columns;
    of.column_step = transposed ? rows : 1;
    return of;
  }
  template <typename B>
  DeviceMatrices<B> FirstLaid(const DeviceMatrices<B>& of) const {
    return Laid(of, product_.rows, product_.terms, op_.first_transposed,
                op_.shared == Shared::kFirst);
  }
  template <typename B>
  DeviceMatrices<B> SecondLaid(const DeviceMatrices<B>& of) const {
    return Laid(of, product_.terms, product_.columns, op_.second_transposed,
                op_.shared == Shared::kSecond);
  }
  template <typename B>
  DeviceMatrices<B> Product(const Activations<B>& view) const {
    return Laid(Of(view), product_.rows, product_.columns, false, false);
  }
  DeviceMatrices<const A> First(const Activations<const A>* inputs) const {
    if (op_.shared == Shared::kFirst) return FirstLaid<const A>({context_->factors(0)});
    return FirstLaid(Of(inputs[0]));
  }
  DeviceMatrices<const A> Second(const Activations<const A>* inputs) const {
    if (op_.shared == Shared::kSecond) return SecondLaid<const A>({context_->factors(0)});
    return SecondLaid(Of(inputs[Input(kSecond)]));
  }

  MatrixProductOp op_;
  ProductShape product_;
  DeviceKernelContext<A>* context_;
  typename DeviceKernelContext<A>::View z_;  // before the activation, then its gradient
  int64_t size_ = 0;                         // of the shared factor
  int row_gradients_ = -1;                   // [rows, size_]
  int sums_ = -1;
};

template <typename A>
class PositionKernel final : public DeviceKernel<A> {
 public:
  PositionKernel(const PositionOp& op, DeviceKernelContext<A>* context)
      : op_(op),
        size_(op.parameter_features()),
        context_(context),
        sums_(context->ReserveColumnSums(size_)) {
    CHECK_EQ(context->size(0), size_);
  }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.row_major_input = traits.row_major_output = true;
    traits.row_major_dinput = traits.row_major_doutput = true;
    return traits;
  }

  void Forward(const DevicePass&, const ForwardOperands<A>& operands) override {
    const Activations<A> y = operands.output.WithTokens(1);
    Activations<const A> x = y;
    if (context_->inputs() == 0) {
      Fill<A>(context_->stream(), 0, y);
    } else {
      x = operands.inputs[0].WithTokens(1);
    }
    AddPositions<A>(context_->stream(), context_->values(0), size_, scale(), input_scale(), x, y);
  }

  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    Stream& stream = context_->stream();
    const LeafGradients::Target target = context_->Open(pass, 0, 1);
    LeafColumnSums<A>(stream, pass.shape,
                      operands.doutput.WithTokens(1).Slice(op_.first_feature(), size_), target.data,
                      target.map_stride, target.leaf_stride, context_->template Data<float>(sums_));
    if (op_.scale != 1) {
      ScaleLeaves(stream, pass.shape.leaves, size_, target.leaf_stride, scale(), target.data);
    }
    context_->Close(pass, 0);
    if (op_.input_scale == 1) return;
    AddPositions<A>(stream, /*p=*/nullptr, /*count=*/0, 0, input_scale(),
                    operands.doutput.WithTokens(1), operands.dinputs[0].WithTokens(1));
  }

 private:
  float scale() const { return static_cast<float>(op_.scale); }
  float input_scale() const { return static_cast<float>(op_.input_scale); }

  PositionOp op_;
  int64_t size_;
  DeviceKernelContext<A>* context_;
  int sums_;
};

}  // namespace

ELASTOR_DEFINE_DEVICE_KERNEL(MatrixProductOp, MatrixProductKernel)
ELASTOR_DEFINE_DEVICE_KERNEL(PositionOp, PositionKernel)

}  // namespace elastor::cuda
