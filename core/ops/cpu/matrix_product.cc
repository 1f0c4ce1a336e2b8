#include "core/ops/matrix_product.h"

#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class MatrixProductKernel final : public CpuKernel<T> {
 public:
  MatrixProductKernel(const MatrixProductOp& op, CpuKernelContext* context)
      : op_(op), product_(op.product) {
    if (op.activation != Activation::kIdentity) {
      derivative_ = context->Save(product_.count * op.output_features());
    }
    if (op.shared == Shared::kNone) return;
    parameter_ = context->parameter(0);
    offset_ = context->offset(0);
    size_ = op.shared == Shared::kFirst ? op.first_features() : op.second_features();
    CHECK_EQ(context->info(0).size, size_) << context->info(0).name;
    row_gradients_ = context->Save(size_);
    context->Scratch(LeafSumElements(size_));
    lanes_.resize(size_ * kPanelRows);
  }

  KernelTraits traits() const override { return {.reads_inputs = 2}; }

  // Every lane gets the shared factor.
  void Prepare(const T* parameters) override {
    for (int64_t i = 0; i < size_; ++i) {
      std::fill_n(lanes_.begin() + i * kPanelRows, kPanelRows, parameters[offset_ + i]);
    }
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      const Panels<T> y = rows(operands.output);
      MatrixProducts<T>(product_, First(rows(Value(operands.inputs, kFirst))),
                        Second(rows(Value(operands.inputs, kSecond))), Product(y));
      if (derivative_ < 0) return;
      Panels<T> derivative;
      if (pass.training) derivative = rows(memory.Saved(derivative_));
      Activate<T>(op_.activation, y, y, derivative);
    });
  }

  // dA = dY B^T and dB = A^T dY.
  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    const auto [count, m, n, k] = product_;
    pass.Share(pass.rows(), [&, count = count, m = m, n = n, k = k](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      Panels<const T> dz = rows(operands.doutput);
      if (derivative_ >= 0) {
        const Panels<T> derivative = rows(memory.Saved(derivative_));
        Multiply<T>(dz, Panels<const T>(derivative), derivative);
        dz = derivative;
      }
      const auto gradient = [&](int factor) {
        return rows(IsShared(factor) ? memory.Saved(row_gradients_)
                                     : operands.dinputs[Input(factor)]);
      };
      const auto dy = Product(dz);
      MatrixProducts<T>({count, k, n, m}, First(rows(Value(operands.inputs, kFirst))).Transposed(),
                        dy, Second(gradient(kSecond)));
      MatrixProducts<T>({count, m, k, n}, dy,
                        Second(rows(Value(operands.inputs, kSecond))).Transposed(),
                        First(gradient(kFirst)));
    });
    if (op_.shared == Shared::kNone) return;
    SumOverLeaves(pass.leaves.leaves(), size_, memory.scratch(), [&](const LeafRows& leaf, T* d) {
      BiasGradient<T>(leaf.Of(Panels<const T>(memory.Saved(row_gradients_))), d, Store::kOverwrite);
    });
    DeliverCopy(pass.sink, parameter_, size_, memory.scratch());
  }

 private:
  using Shared = MatrixProductOp::Shared;
  static constexpr int kFirst = 0;
  static constexpr int kSecond = 1;

  bool IsShared(int factor) const {
    return op_.shared == (factor == kFirst ? Shared::kFirst : Shared::kSecond);
  }
  int Input(int factor) const { return op_.shared == Shared::kFirst ? 0 : factor; }
  Panels<const T> Value(const Panels<const T>* inputs, int factor) const {
    if (!IsShared(factor)) return inputs[Input(factor)];
    return {lanes_.data(), inputs[0].rows, size_, /*panel_stride=*/0};
  }

  template <typename U>
  static RowMatrices<U> Matrices(Panels<U> view, int64_t rows, int64_t columns, bool transposed,
                                 bool shared) {
    const int64_t step = shared ? 0 : rows * columns;
    if (transposed) return {view, step, 1, rows};
    return {view, step, columns, 1};
  }
  template <typename U>
  RowMatrices<U> First(Panels<U> view) const {
    return Matrices(view, product_.rows, product_.terms, op_.first_transposed, IsShared(kFirst));
  }
  template <typename U>
  RowMatrices<U> Second(Panels<U> view) const {
    return Matrices(view, product_.terms, product_.columns, op_.second_transposed,
                    IsShared(kSecond));
  }
  template <typename U>
  RowMatrices<U> Product(Panels<U> view) const {
    return Matrices(view, product_.rows, product_.columns, false, false);
  }

  const MatrixProductOp op_;
  const ProductShape product_;
  int derivative_ = -1;  // saved: of the activation; then dz
  int parameter_ = -1;
  int64_t offset_ = 0;
  int64_t size_ = 0;
  int row_gradients_ = -1;  // saved: every row's gradient of the shared factor
  std::vector<T> lanes_;    // the shared factor, each element for all rows of a panel
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(MatrixProductOp, MatrixProductKernel)

}  // namespace elastor
