#include "core/base/leaves.h"
#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"
#include "core/ops/gated_feed_forward.h"

namespace elastor {
namespace {

template <typename T>
class GatedSumFeedForwardKernel final : public CpuKernel<T> {
 public:
  GatedSumFeedForwardKernel(const GatedSumFeedForwardOp& op, CpuKernelContext* context)
      : tokens_(op.tokens),
        width_(op.width),
        hidden_(op.hidden),
        activation_(op.activation),
        h_(context->Save(op.tokens * op.hidden)),
        factors_(context->Save(op.tokens * 3 * op.hidden)),
        precision_(context->precision()),
        packed_(op.tokens, Packed(precision_)) {
    for (int p = 0; p < kParameters; ++p) {
      parameters_[p] = context->parameter(p);
      offsets_[p] = context->offset(p);
    }
    context->Scratch(LeafSumElements(tokens_ * std::max(3 * hidden_, width_)));
  }

  KernelTraits traits() const override { return {.reads_inputs = 1}; }

  void Prepare(const T* parameters) override { up_bias_values_ = parameters + offsets_[kUpBias]; }

  void Repack(const T* parameters, int part, int parts) override {
    const Range tokens = PartOf(part, parts, tokens_);
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      const T* up = parameters + offsets_[kUp] + t * 3 * hidden_ * width_;
      const auto a = MatrixView<T>::RowMajor(up, hidden_, width_);
      const auto b = MatrixView<T>::RowMajor(up + hidden_ * width_, hidden_, width_);
      const auto c = MatrixView<T>::RowMajor(up + 2 * hidden_ * width_, hidden_, width_);
      const auto w = MatrixView<T>::RowMajor(parameters + offsets_[kDown] + t * width_ * hidden_,
                                             width_, hidden_);
      const auto r = MatrixView<T>::RowMajor(parameters + offsets_[kResidual] + t * width_ * width_,
                                             width_, width_);
      Packed& packed = packed_[t];
      packed.a.Pack({{a}});
      packed.b.Pack({{b}});
      packed.c.Pack({{c}});
      packed.down.Pack({{w, r}});
      packed.down_back.Pack({{w.Transposed()}});
      packed.back.Pack({{a.Transposed(), b.Transposed(), c.Transposed(), r.Transposed()}});
      packed.bias.resize(width_);
      for (int64_t d = 0; d < width_; ++d) {
        packed.bias[d] = parameters[offsets_[kDownBias] + t * width_ + d] +
                         parameters[offsets_[kResidualBias] + t * width_ + d];
      }
    }
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    const Panels<T> h = memory.Saved(h_);
    const Panels<T> factors = memory.Saved(factors_);
    for (int64_t t = 0; t < tokens_; ++t) {
      const Panels<const T> m = operands.inputs[0].Slice(t * width_, width_);
      const Panels<T> h_t = h.Slice(t * hidden_, hidden_);
      const Panels<T> u = factors.Slice(3 * t * hidden_, hidden_);
      const T* biases = up_bias_values_ + t * 3 * hidden_;
      Epilogue<T> gate;  // u = act(B m + b)
      gate.bias = biases + hidden_;
      gate.activation = activation_;
      if (pass.training) gate.derivative = factors.Slice((3 * t + 1) * hidden_, hidden_);
      MatMul<T>(packed_[t].b, {{m}}, u, gate);
      Epilogue<T> sum;  // u += A m + a
      sum.bias = biases;
      sum.residual = u;
      MatMul<T>(packed_[t].a, {{m}}, u, sum);
      Epilogue<T> product;  // h = u * (C m + c)
      product.bias = biases + 2 * hidden_;
      product.multiplier = u;
      if (pass.training) product.unscaled = factors.Slice((3 * t + 2) * hidden_, hidden_);
      MatMul<T>(packed_[t].c, {{m}}, h_t, product);
      Epilogue<T> down;
      down.bias = packed_[t].bias.data();
      MatMul<T>(packed_[t].down, {{h_t, m}}, operands.output.Slice(t * width_, width_), down);
    }
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    const Panels<T> factors = memory.Saved(factors_);
    for (int64_t t = 0; t < tokens_; ++t) {
      const Panels<const T> dz = operands.doutput.Slice(t * width_, width_);
      const Panels<T> u = factors.Slice(3 * t * hidden_, hidden_);
      const Panels<T> derivative = factors.Slice((3 * t + 1) * hidden_, hidden_);
      const Panels<T> r = factors.Slice((3 * t + 2) * hidden_, hidden_);
      // With dh = W^T dz: d(C m) = dh * u into r's memory, du = dh * r into u's.
      Epilogue<T> gate;
      gate.multiplier = r;
      gate.second_output = r;
      gate.second_multiplier = u;
      MatMul<T>(packed_[t].down_back, {{dz}}, u, gate);
      Multiply<T>(u, derivative, derivative);  // d(B m)
      MatMul<T>(packed_[t].back, {{factors.Slice(3 * t * hidden_, 3 * hidden_), dz}},
                operands.dinputs[0].Slice(t * width_, width_), {});
    }
    DeliverGradients(pass, memory.scratch(), operands.inputs[0], factors, memory.Saved(h_),
                     operands.doutput);
  }

 private:
  // The parameters in the op's order.
  enum { kUp, kUpBias, kDown, kDownBias, kResidual, kResidualBias, kParameters };

  void DeliverGradients(const Pass<T>& pass, T* scratch, Panels<const T> x,
                        Panels<const T> dprojected, Panels<const T> h, Panels<const T> dy) const {
    const std::span<const LeafRows> leaves = pass.leaves.leaves();
    const auto deliver = [&](int parameter, int64_t size, const auto& part) {
      DeliverParts(pass.sink, parameters_[parameter], size, tokens_, part);
    };
    const auto dp_t = [&](int64_t t) { return dprojected.Slice(3 * t * hidden_, 3 * hidden_); };
    const auto h_t = [&](int64_t t) { return h.Slice(t * hidden_, hidden_); };
    const auto x_t = [&](int64_t t) { return x.Slice(t * width_, width_); };
    const auto dz_t = [&](int64_t t) { return dy.Slice(t * width_, width_); };
    if (RowGradientSink<T>* const sink = pass.row_sink; sink != nullptr) {
      for (int64_t t = 0; t < tokens_; ++t) {
        sink->AddProduct(parameters_[kUp], t * 3 * hidden_ * width_, dp_t(t), x_t(t));
        sink->AddProduct(parameters_[kDown], t * width_ * hidden_, dz_t(t), h_t(t));
        sink->AddProduct(parameters_[kResidual], t * width_ * width_, dz_t(t), x_t(t));
      }
      sink->AddTerm(parameters_[kUpBias], 0, dprojected, {});
      sink->AddTerm(parameters_[kDownBias], 0, dy, {});
      sink->AddTerm(parameters_[kResidualBias], 0, dy, {});
      return;
    }
    deliver(kUp, 3 * hidden_ * width_, [&](int64_t t, T* d, Store store) {
      WeightGradient<T>(leaves, dp_t(t), x_t(t), d, width_, store, precision_);
    });
    deliver(kDown, width_ * hidden_, [&](int64_t t, T* d, Store store) {
      WeightGradient<T>(leaves, dz_t(t), h_t(t), d, hidden_, store, precision_);
    });
    deliver(kResidual, width_ * width_, [&](int64_t t, T* d, Store store) {
      WeightGradient<T>(leaves, dz_t(t), x_t(t), d, width_, store, precision_);
    });
    const int64_t up_biases = tokens_ * 3 * hidden_;
    SumOverLeaves(leaves, up_biases, scratch, [&](const LeafRows& leaf, T* d) {
      BiasGradient<T>(leaf.Of(dprojected), d, Store::kOverwrite);
    });
    DeliverCopy(pass.sink, parameters_[kUpBias], up_biases, scratch);
    const int64_t biases = tokens_ * width_;
    SumOverLeaves(leaves, biases, scratch, [&](const LeafRows& leaf, T* d) {
      BiasGradient<T>(leaf.Of(dy), d, Store::kOverwrite);
    });
    DeliverCopy(pass.sink, parameters_[kDownBias], biases, scratch);
    DeliverCopy(pass.sink, parameters_[kResidualBias], biases, scratch);
  }

  const int64_t tokens_;
  const int64_t width_;
  const int64_t hidden_;
  const Activation activation_;
  int parameters_[kParameters];
  int64_t offsets_[kParameters];
  int h_;        // saved: [T H]
  int factors_;  // saved: [T 3H]: a token's u, act', C M + c; then du, d(B M), d(C M)
  const T* up_bias_values_ = nullptr;
  const Precision precision_;
  struct Packed {
    explicit Packed(Precision precision)
        : a(precision),
          b(precision),
          c(precision),
          down(precision),
          down_back(precision),
          back(precision) {}
    PackedMatrix<T> a, b, c;
    PackedMatrix<T> down;       // [W R]
    PackedMatrix<T> down_back;  // W^T
    PackedMatrix<T> back;       // [A^T B^T C^T R^T]
    std::vector<T> bias;        // w + s
  };
  std::vector<Packed> packed_;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(GatedSumFeedForwardOp, GatedSumFeedForwardKernel)

}  // namespace elastor
