#include "core/ops/linear.h"

#include "core/base/leaves.h"
#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class LinearKernel final : public CpuKernel<T> {
 public:
  LinearKernel(const LinearOp& op, CpuKernelContext* context)
      : op_(op),
        weight_(context->parameter(0)),
        weight_offset_(context->offset(0)),
        precision_(context->precision()),
        forward_(op.maps(), PackedMatrix<T>(precision_)),
        transposed_(op.maps(), PackedMatrix<T>(precision_)) {
    CHECK_EQ(context->info(0).size, op.maps() * op.out * op.in) << context->info(0).name;
    if (op.bias) {
      bias_ = context->parameter(1);
      bias_offset_ = context->offset(1);
      CHECK_EQ(context->info(1).size, op.maps() * op.out) << context->info(1).name;
    }
    if (op.activation != Activation::kIdentity) derivative_ = context->Save(op.tokens * op.out);
    if (op.maps() < op.tokens) context->Scratch(LeafSumElements(op.out * op.in));
    if (op.bias) context->Scratch(LeafSumElements(op.maps() * op.out));
  }

  KernelTraits traits() const override { return {.reads_inputs = 1, .adds_addend = true}; }

  void Prepare(const T* parameters) override {
    if (op_.bias) bias_values_ = parameters + bias_offset_;
    for (PackedMatrix<T>& w : forward_) w.Reshape(op_.out, op_.in);
    for (PackedMatrix<T>& w : transposed_) w.Reshape(op_.in, op_.out);
  }

  // Shares maps where there are several, else tiles.
  void Repack(const T* parameters, int part, int parts) override {
    const bool share_maps = op_.maps() > 1;
    const Range maps = share_maps ? PartOf(part, parts, op_.maps()) : Range{0, 1};
    for (int64_t i = maps.begin; i < maps.end; ++i) {
      const auto w = MatrixView<T>::RowMajor(parameters + weight_offset_ + i * op_.out * op_.in,
                                             op_.out, op_.in);
      forward_[i].PackPart({{w}}, share_maps ? 0 : part, share_maps ? 1 : parts);
      transposed_[i].PackPart({{w.Transposed()}}, share_maps ? 0 : part, share_maps ? 1 : parts);
    }
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    const bool save = pass.training && op_.activation != Activation::kIdentity;
    ForEachProduct(pass, [&](int64_t t, const auto& rows) {
      Epilogue<T> epilogue;
      if (op_.bias) epilogue.bias = bias_values_ + Map(t) * op_.out;
      epilogue.activation = op_.activation;
      if (save) epilogue.derivative = rows(memory.Saved(derivative_), op_.out);
      if (operands.inputs[1].data != nullptr) {
        epilogue.residual = rows(operands.inputs[1], op_.out);
      }
      MatMul<T>(forward_[Map(t)], {{rows(operands.inputs[0], op_.in)}},
                rows(operands.output, op_.out), epilogue);
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    Panels<const T> dz = operands.doutput;  // gradient before the activation
    if (op_.activation != Activation::kIdentity) {
      const Panels<T> derivative = memory.Saved(derivative_);
      Multiply<T>(dz, derivative, derivative);
      dz = derivative;
    }
    DeliverGradients(pass, memory, operands.inputs[0], dz);
    const Panels<T> dx = operands.dinputs[0];
    if (dx.data == nullptr) return;
    ForEachProduct(pass, [&](int64_t t, const auto& rows) {
      Epilogue<T> epilogue;
      if (operands.addends[0].data != nullptr) {
        epilogue.residual = rows(operands.addends[0], op_.in);
      }
      MatMul<T>(transposed_[Map(t)], {{rows(dz, op_.out)}}, rows(dx, op_.in), epilogue);
    });
  }

 private:
  int64_t Map(int64_t token) const { return token % op_.maps(); }

  // The features of token t, `width` of them.
  template <typename U>
  Panels<U> Token(Panels<U> view, int64_t t, int64_t width) const {
    if (op_.weights == LinearOp::Weights::kInterleaved) return view.Every(t, op_.tokens, width);
    return view.Slice(t * width, width);
  }

  // Whether the tokens of a pass are taken for panels of one view: they share their weights, and a
  // pass of one panel would be half a tile, for which all weights pass by.
  bool TokensAreRows(int64_t rows) const {
    return op_.maps() == 1 && op_.tokens > 1 && rows > 1 && rows <= kPanelRows;
  }
  // The features of all tokens, `width` of each, one token a panel.
  template <typename U>
  Panels<U> TokenRows(Panels<U> view, int64_t width) const {
    Panels<U> rows = Token(view, 0, width);
    rows.rows = op_.tokens * kPanelRows;
    rows.panel_stride = Token(view, 1, width).data - rows.data;
    return rows;
  }

  // Calls product(t, rows) for the products of a pass, in shares of its threads: rows(view, width)
  // are some rows of token t, or of all tokens that share its weights.
  template <typename Product>
  void ForEachProduct(const Pass<T>& pass, const Product& product) const {
    if (TokensAreRows(pass.rows())) {
      return pass.Share(op_.tokens * kPanelRows, [&](int64_t begin, int64_t end) {
        product(0, [&](auto view, int64_t width) {
          return TokenRows(view, width).Rows(begin, end - begin);
        });
      });
    }
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      for (int64_t t = 0; t < op_.tokens; ++t) {
        product(t, [&](auto view, int64_t width) {
          return Token(view, t, width).Rows(begin, end - begin);
        });
      }
    });
  }

  void DeliverRowGradients(RowGradientSink<T>* sink, Panels<const T> x, Panels<const T> dz) const {
    for (int64_t t = 0; t < op_.tokens; ++t) {
      const Panels<const T> dz_t = Token(dz, t, op_.out);
      sink->AddProduct(weight_, Map(t) * op_.out * op_.in, dz_t, Token(x, t, op_.in));
      if (op_.bias) sink->AddTerm(bias_, Map(t) * op_.out, dz_t, {});
    }
  }

  void DeliverGradients(const Pass<T>& pass, const KernelMemory<T>& memory, Panels<const T> x,
                        Panels<const T> dz) const {
    if (pass.row_sink != nullptr) return DeliverRowGradients(pass.row_sink, x, dz);
    const std::span<const LeafRows> leaves = pass.leaves.leaves();
    T* const scratch = memory.scratch();
    const int64_t weights = op_.out * op_.in;
    if (TokensAreRows(pass.rows())) {
      // One leaf. Tokens are added as they come, as leaves would be that never wait for another.
      thread_local std::vector<LeafRows> tokens;
      tokens.resize(op_.tokens);
      for (int64_t t = 0; t < op_.tokens; ++t) {
        tokens[t] = {leaves[0].rows, t * kPanelRows, t, t > 0 ? 1 : 0};
      }
      DeliverParts(pass.sink, weight_, weights, 1, [&](int64_t, T* dw, Store store) {
        WeightGradient<T>(tokens, TokenRows(dz, op_.out), TokenRows(x, op_.in), dw, op_.in, store,
                          precision_);
      });
    } else if (op_.maps() < op_.tokens) {
      SumOverLeaves(leaves, weights, scratch, [&](const LeafRows& leaf, T* dw) {
        for (int64_t t = 0; t < op_.tokens; ++t) {
          WeightGradient<T>(leaf.Of(Token(dz, t, op_.out)), leaf.Of(Token(x, t, op_.in)), dw,
                            op_.in, StoreOf(t), precision_);
        }
      });
      DeliverCopy(pass.sink, weight_, weights, scratch);
    } else {
      DeliverParts(pass.sink, weight_, weights, op_.tokens, [&](int64_t t, T* dw, Store store) {
        const Panels<const T> dz_t = Token(dz, t, op_.out);
        pass.Share(op_.out, [&](int64_t begin, int64_t end) {
          WeightGradient<T>(leaves, dz_t.Slice(begin, end - begin), Token(x, t, op_.in),
                            dw + begin * op_.in, op_.in, store, precision_);
        });
      });
    }
    if (!op_.bias) return;
    const int64_t biases = op_.maps() * op_.out;
    SumOverLeaves(leaves, biases, scratch, [&](const LeafRows& leaf, T* db) {
      for (int64_t t = 0; t < op_.tokens; ++t) {
        BiasGradient<T>(leaf.Of(Token(dz, t, op_.out)), db + Map(t) * op_.out, StoreOf(t));
      }
    });
    DeliverCopy(pass.sink, bias_, biases, scratch);
  }

  // A map's first token begins its gradient, the others are added.
  Store StoreOf(int64_t token) const {
    return token < op_.maps() ? Store::kOverwrite : Store::kAdd;
  }

  const LinearOp op_;
  int weight_;
  int bias_ = -1;
  int64_t weight_offset_;
  int64_t bias_offset_ = 0;
  int derivative_ = -1;  // saved: act'(z), then the gradient before the activation
  const T* bias_values_ = nullptr;
  Precision precision_;
  std::vector<PackedMatrix<T>> forward_;     // W, one per map
  std::vector<PackedMatrix<T>> transposed_;  // W^T
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(LinearOp, LinearKernel)

}  // namespace elastor
