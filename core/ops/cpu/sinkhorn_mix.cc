#include "core/ops/sinkhorn_mix.h"

#include "core/base/leaves.h"
#include "core/kernels/matmul.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class SinkhornMixKernel final : public CpuKernel<T> {
 public:
  SinkhornMixKernel(const SinkhornMixOp& op, CpuKernelContext* context)
      : op_(op),
        shape_(op.matrices()),
        precision_(context->precision()),
        sinkhorn_(shape_),
        forward_(shape_.count, PackedMatrix<T>(precision_)),
        transposed_(shape_.count, PackedMatrix<T>(precision_)) {
    const int parameters = op.rank > 0 ? 2 : 1;
    for (int i = 0; i < parameters; ++i) {
      parameters_.push_back({context->parameter(i), context->offset(i), context->info(i).size});
      size_ += context->info(i).size;
    }
    CHECK_EQ(size_, op.rank > 0 ? op.rank * (op.blocks + op.columns()) : shape_.elements());
    if (op.rank > 0) logits_.resize(shape_.elements());
    context->Scratch(LeafSumElements(size_) + 2 * shape_.elements() + sinkhorn_.scratch_elements());
  }

  KernelTraits traits() const override { return {.reads_inputs = 1, .adds_addend = true}; }

  void Prepare(const T* parameters) override {
    const T* logits = parameters + parameters_[0].offset;
    if (op_.rank > 0) {
      factors_ = {logits, parameters + parameters_[1].offset};
      MultiplyFactors<T>(op_.blocks, op_.rank, op_.columns(), factors_[0], factors_[1],
                         logits_.data());
      logits = logits_.data();
    }
    sinkhorn_.Compute(logits);
    for (PackedMatrix<T>& w : forward_) w.Reshape(shape_.size, shape_.size);
    for (PackedMatrix<T>& w : transposed_) w.Reshape(shape_.size, shape_.size);
  }

  void Repack(const T*, int part, int parts) override {
    const Range matrices = PartOf(part, parts, shape_.count);
    for (int64_t i = matrices.begin; i < matrices.end; ++i) {
      const auto w = MatrixView<T>::RowMajor(sinkhorn_.matrices() + i * shape_.matrix(),
                                             shape_.size, shape_.size);
      forward_[i].PackPart({{w}}, 0, 1);
      transposed_[i].PackPart({{w.Transposed()}}, 0, 1);
    }
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    Multiply(pass, forward_, operands.inputs[0], {}, operands.output);
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    T* const sum = memory.scratch();
    T* const dw = sum + LeafSumElements(size_);
    T* const dlogits = dw + shape_.elements();
    T* const rest = dlogits + shape_.elements();
    SumOverLeaves(pass.leaves.leaves(), size_, sum, [&](const LeafRows& leaf, T* d) {
      for (int64_t t = 0; t < op_.problems(); ++t) {
        WeightGradient<T>(leaf.Of(Problem(operands.doutput, t)),
                          leaf.Of(Problem(operands.inputs[0], t)), dw + Matrix(t) * shape_.matrix(),
                          shape_.size, t < shape_.count ? Store::kOverwrite : Store::kAdd,
                          precision_);
      }
      sinkhorn_.Backward(dw, op_.rank > 0 ? dlogits : d, rest);
      if (op_.rank > 0) {
        FactorGradients<T>(op_.blocks, op_.rank, op_.columns(), factors_[0], factors_[1], dlogits,
                           d, d + parameters_[0].size);
      }
    });
    const T* values = sum;
    for (const Parameter& p : parameters_) {
      DeliverCopy(pass.sink, p.number, p.size, values);
      values += p.size;
    }
    if (operands.dinputs[0].data == nullptr) return;
    Multiply(pass, transposed_, operands.doutput, operands.addends[0], operands.dinputs[0]);
  }

 private:
  struct Parameter {
    int number;
    int64_t offset;
    int64_t size;
  };

  int64_t Matrix(int64_t problem) const { return problem % shape_.count; }
  template <typename U>
  Panels<U> Problem(Panels<U> view, int64_t t) const {
    if (op_.within()) return view.Slice(t * op_.width, op_.width);
    return view.Every(t, op_.width, op_.blocks);
  }
  // y = the matrices times x, + addend if there is one.
  void Multiply(const Pass<T>& pass, const std::vector<PackedMatrix<T>>& matrices,
                Panels<const T> x, Panels<const T> addend, Panels<T> y) const {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto part = [&](auto view, int64_t t) {
        return Problem(view, t).Rows(begin, end - begin);
      };
      for (int64_t t = 0; t < op_.problems(); ++t) {
        Epilogue<T> epilogue;
        if (addend.data != nullptr) epilogue.residual = part(addend, t);
        MatMul<T>(matrices[Matrix(t)], {{part(x, t)}}, part(y, t), epilogue);
      }
    });
  }

  const SinkhornMixOp op_;
  const SinkhornShape shape_;
  const Precision precision_;
  std::vector<Parameter> parameters_;
  int64_t size_ = 0;                         // of all parameters
  std::vector<const T*> factors_;            // with a rank: the values of L and R
  std::vector<T> logits_;                    // with a rank
  Sinkhorn<T> sinkhorn_;                     // W of linear maps
  std::vector<PackedMatrix<T>> forward_;     // W
  std::vector<PackedMatrix<T>> transposed_;  // W'
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(SinkhornMixOp, SinkhornMixKernel)

}  // namespace elastor
