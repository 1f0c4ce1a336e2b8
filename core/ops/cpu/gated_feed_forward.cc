#include "core/ops/gated_feed_forward.h"

#include "core/base/leaves.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class GatedFeedForwardKernel final : public CpuKernel<T> {
 public:
  GatedFeedForwardKernel(const GatedFeedForwardOp& op, CpuKernelContext* context)
      : tokens_(op.tokens),
        width_(op.width),
        hidden_(op.hidden),
        activation_(op.activation),
        up_(context->parameter(0)),
        down_(context->parameter(1)),
        residual_(context->parameter(2)),
        up_offset_(context->offset(0)),
        down_offset_(context->offset(1)),
        residual_offset_(context->offset(2)),
        h_(context->Save(op.tokens * op.hidden)),
        factors_(context->Save(op.tokens * 2 * op.hidden)),
        precision_(context->precision()),
        packed_(op.tokens, Packed(precision_)) {}

  KernelTraits traits() const override { return {.reads_inputs = 1}; }

  void Repack(const T* parameters, int part, int parts) override {
    const Range tokens = PartOf(part, parts, tokens_);
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      const T* up = parameters + up_offset_ + t * 2 * hidden_ * width_;
      const auto w1 = MatrixView<T>::RowMajor(up, hidden_, width_);
      const auto w2 = MatrixView<T>::RowMajor(up + hidden_ * width_, hidden_, width_);
      const auto w3 = MatrixView<T>::RowMajor(parameters + down_offset_ + t * width_ * hidden_,
                                              width_, hidden_);
      const auto wr = MatrixView<T>::RowMajor(parameters + residual_offset_ + t * width_ * width_,
                                              width_, width_);
      packed_[t].up.PackPair(w1, w2);
      packed_[t].down.Pack({{w3, wr}});
      packed_[t].down_back.Pack({{w3.Transposed()}});
      packed_[t].back.Pack({{w1.Transposed(), w2.Transposed(), wr.Transposed()}});
    }
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    const Panels<T> h = memory.Saved(h_);
    const Panels<T> factors = memory.Saved(factors_);
    for (int64_t t = 0; t < tokens_; ++t) {
      const Panels<const T> m = operands.inputs[0].Slice(t * width_, width_);
      const Panels<T> h_t = h.Slice(t * hidden_, hidden_);
      Panels<T> first, second;
      if (pass.training) {
        first = factors.Slice(2 * t * hidden_, hidden_);
        second = factors.Slice((2 * t + 1) * hidden_, hidden_);
      }
      GatedUpProjection<T>(packed_[t].up, m, nullptr, nullptr, activation_, h_t, first, second);
      MatMul<T>(packed_[t].down, {{h_t, m}}, operands.output.Slice(t * width_, width_), {});
    }
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    const Panels<T> h = memory.Saved(h_);
    const Panels<T> factors = memory.Saved(factors_);
    const std::span<const LeafRows> leaves = pass.leaves.leaves();
    const bool by_row = pass.row_sink != nullptr;
    typename GradientSink<T>::Target dup, ddown, dresidual;
    if (!by_row) {
      dup = pass.sink->Open(up_);
      ddown = pass.sink->Open(down_);
      dresidual = pass.sink->Open(residual_);
    }
    for (int64_t t = 0; t < tokens_; ++t) {
      const Panels<const T> m = operands.inputs[0].Slice(t * width_, width_);
      const Panels<const T> dz = operands.doutput.Slice(t * width_, width_);
      // dp = dh * (dh/dp) and dq = dh * (dh/dq), where dh = W3^T dz, over the saved factors.
      const Panels<T> dp = factors.Slice(2 * t * hidden_, hidden_);
      const Panels<T> dq = factors.Slice((2 * t + 1) * hidden_, hidden_);
      Epilogue<T> gate;
      gate.multiplier = dp;
      gate.second_output = dq;
      gate.second_multiplier = dq;
      MatMul<T>(packed_[t].down_back, {{dz}}, dp, gate);
      const Panels<const T> dpq = factors.Slice(2 * t * hidden_, 2 * hidden_);
      const Panels<const T> h_t = h.Slice(t * hidden_, hidden_);
      const int64_t up = t * 2 * hidden_ * width_;
      const int64_t down = t * width_ * hidden_;
      const int64_t residual = t * width_ * width_;
      if (by_row) {
        pass.row_sink->AddProduct(up_, up, dpq, m);
        pass.row_sink->AddProduct(down_, down, dz, h_t);
        pass.row_sink->AddProduct(residual_, residual, dz, m);
      } else {
        WeightGradient<T>(leaves, dpq, m, dup.data + up, width_, dup.store, precision_);
        WeightGradient<T>(leaves, dz, h_t, ddown.data + down, hidden_, ddown.store, precision_);
        WeightGradient<T>(leaves, dz, m, dresidual.data + residual, width_, dresidual.store,
                          precision_);
      }
      MatMul<T>(packed_[t].back, {{dpq, dz}}, operands.dinputs[0].Slice(t * width_, width_), {});
    }
    if (by_row) return;
    pass.sink->Close(up_);
    pass.sink->Close(down_);
    pass.sink->Close(residual_);
  }

 private:
  const int64_t tokens_;
  const int64_t width_;
  const int64_t hidden_;
  const Activation activation_;
  int up_;
  int down_;
  int residual_;
  int64_t up_offset_;
  int64_t down_offset_;
  int64_t residual_offset_;
  int h_;        // saved: [T H]
  int factors_;  // saved: [T 2H]: dh/d(W1 M) and dh/d(W2 M), then their products with dh
  const Precision precision_;
  struct Packed {
    explicit Packed(Precision precision)
        : up(precision), down(precision), down_back(precision), back(precision) {}
    PackedMatrix<T> up;         // W1 | W2 paired
    PackedMatrix<T> down;       // [W3 Wr]
    PackedMatrix<T> down_back;  // W3^T
    PackedMatrix<T> back;       // [W1^T W2^T Wr^T]
  };
  std::vector<Packed> packed_;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(GatedFeedForwardOp, GatedFeedForwardKernel)

}  // namespace elastor
