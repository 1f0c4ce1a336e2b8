#include "core/ops/target_attention.h"

#include <algorithm>
#include <vector>

#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"
#include "core/ops/cpu/panel_lengths.h"

namespace elastor {
namespace {

// A panel of 16 rows is computed at a time, up to its longest row. Its positions are the rows of
// the MLP's products, those of one t side by side in a panel. Nothing of the MLP is kept for the
// backward pass, which computes it again: that costs a third more, and the memory is that of one
// panel.
template <typename T>
class TargetAttentionKernel final : public CpuKernel<T> {
 public:
  TargetAttentionKernel(const TargetAttentionOp& op, CpuKernelContext* context)
      : op_(op), precision_(context->precision()), weights_(context->Save(op.positions)) {
    const int64_t rows = op.positions * kPanelRows;
    const auto take = [&](int64_t features) {
      const int64_t offset = block_elements_;
      block_elements_ += PanelElements(rows, features);
      return offset;
    };
    int parameter = 0;
    for (int64_t i = 0; i < op.layers(); ++i) {
      Layer layer(op.layer_in(i), op.layer_out(i), precision_);
      layer.weight = Take(context, parameter++, layer.out * layer.in);
      if (op.has_bias(i)) layer.bias = Take(context, parameter++, layer.out);
      layer.input = take(layer.in);
      layer.derivative = take(layer.out);
      layers_.push_back(std::move(layer));
    }
    scores_ = take(1);
    context->Scratch(LeafSumElements(gradients_) + block_elements_);
  }

  KernelTraits traits() const override { return {.reads_inputs = 1}; }

  void Prepare(const T* parameters) override {
    for (Layer& layer : layers_) {
      layer.forward.Reshape(layer.out, layer.in);
      layer.transposed.Reshape(layer.in, layer.out);
      if (layer.bias.number >= 0) layer.bias_values = parameters + layer.bias.offset;
    }
  }

  void Repack(const T* parameters, int part, int parts) override {
    for (Layer& layer : layers_) {
      const auto w = MatrixView<T>::RowMajor(parameters + layer.weight.offset, layer.out, layer.in);
      layer.forward.PackPart({{w}}, part, parts);
      layer.transposed.PackPart({{w.Transposed()}}, part, parts);
    }
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    T* const block = memory.scratch() + LeafSumElements(gradients_);
    const Panels<T> weights = memory.Saved(weights_);
    Copy<T>(operands.inputs[0].Slice(0, op_.fields * op_.width), operands.output);
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      for (int64_t p = 0; p < leaf.Of(weights).panels(); ++p) {
        const PanelLengths<T> rows(pass, op_.sequence, op_.sequences, op_.positions, leaf, p);
        const Panels<const T> x = PanelOf(leaf.Of(operands.inputs[0]), p);
        const Panels<T> w = PanelOf(leaf.Of(weights), p);
        ComputeScores(rows, x, block, /*derivatives=*/false);
        if (op_.softmax) {
          Softmax(rows, Scores(rows, block), w);
        } else {
          CopyScores(rows, Scores(rows, block), w);
        }
        SumPositions(rows, x, w, Field(PanelOf(leaf.Of(operands.output), p), op_.field));
      }
    }
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    T* const block = memory.scratch() + LeafSumElements(gradients_);
    const auto gradient = [&](const LeafRows& leaf, T* sums) {
      Store store = Store::kOverwrite;
      for (int64_t p = 0; p < leaf.Of(operands.doutput).panels(); ++p) {
        const PanelLengths<T> rows(pass, op_.sequence, op_.sequences, op_.positions, leaf, p);
        const Panels<const T> x = PanelOf(leaf.Of(operands.inputs[0]), p);
        const Panels<const T> w = PanelOf(leaf.Of(Panels<const T>(memory.Saved(weights_))), p);
        const Panels<const T> dy = PanelOf(leaf.Of(operands.doutput), p);
        const Panels<T> dx = PanelOf(leaf.Of(operands.dinputs[0]), p);
        Copy<T>(dy, dx.Slice(0, dy.features));
        Fill<T>(T{0}, Field(dx, op_.field));
        Fill<T>(T{0}, dx.Slice(dy.features, op_.positions * op_.width));
        if (rows.longest == 0) continue;
        ComputeScores(rows, x, block, /*derivatives=*/true);
        ScoreGradients(rows, x, w, Field(dy, op_.field), Scores(rows, block));
        LayerGradients(rows, block, sums, store);
        InputGradients(rows, x, w, Field(dy, op_.field), Input(rows, block, layers_[0]), dx);
        store = Store::kAdd;
      }
      if (store == Store::kOverwrite) std::fill_n(sums, gradients_, T{0});
    };
    SumOverLeaves(pass.leaves.leaves(), gradients_, memory.scratch(), gradient);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      for (const Parameter* p : {&layer->bias, &layer->weight}) {
        if (p->number >= 0) DeliverCopy(pass.sink, p->number, p->size, memory.scratch() + p->sum);
      }
    }
  }

 private:
  struct Parameter {
    int number = -1;     // in the layout; -1: none
    int64_t offset = 0;  // in the flat array
    int64_t size = 0;
    int64_t sum = 0;  // where its gradient begins among the gradients of all of them
  };
  struct Layer {
    Layer(int64_t in, int64_t out, Precision precision)
        : in(in), out(out), forward(precision), transposed(precision) {}
    int64_t in;
    int64_t out;
    Parameter weight;
    Parameter bias;
    const T* bias_values = nullptr;
    PackedMatrix<T> forward;
    PackedMatrix<T> transposed;
    // Where these begin in a panel's memory: what the layer reads; act'(z) of its output, then the
    // gradient before the activation.
    int64_t input = 0;
    int64_t derivative = 0;
  };
  Parameter Take(CpuKernelContext* context, int index, int64_t size) {
    CHECK_EQ(context->info(index).size, size) << context->info(index).name;
    const Parameter taken = {context->parameter(index), context->offset(index), size, gradients_};
    gradients_ += size;
    return taken;
  }

  template <typename U>
  Panels<U> Field(Panels<U> view, int64_t field) const {
    return view.Slice(field * op_.width, op_.width);
  }
  static Panels<T> View(const PanelLengths<T>& rows, T* at, int64_t features) {
    return {at, rows.longest * kPanelRows, features, PanelStride(features)};
  }
  Panels<T> Input(const PanelLengths<T>& rows, T* block, const Layer& layer) const {
    return View(rows, block + layer.input, layer.in);
  }
  Panels<T> Derivative(const PanelLengths<T>& rows, T* block, const Layer& layer) const {
    return View(rows, block + layer.derivative, layer.out);
  }
  Panels<T> Scores(const PanelLengths<T>& rows, T* block) const {
    return View(rows, block + scores_, 1);
  }

  // s_t of all positions, those beyond a row's length being meaningless; with `derivatives` the
  // layers keep act'.
  void ComputeScores(const PanelLengths<T>& rows, Panels<const T> x, T* block,
                     bool derivatives) const {
    if (rows.longest == 0) return;
    const int64_t k = op_.width;
    const Panels<T> inputs = Input(rows, block, layers_[0]);
    for (int64_t t = 0; t < rows.longest; ++t) {
      const Panels<const T> a = Field(x, op_.target);
      const Panels<const T> h = Field(x, op_.fields + t);
      const Panels<T> to = PanelOf(inputs, t);
      for (int64_t f = 0; f < k; ++f) {
        ForEachVector<T>([&](int64_t lane) {
          const Vec<T> target = Load(&a.At(lane, f));
          const Vec<T> position = Load(&h.At(lane, f));
          Save(&to.At(lane, f), target);
          Save(&to.At(lane, k + f), position);
          Save(&to.At(lane, 2 * k + f), target - position);
          Save(&to.At(lane, 3 * k + f), target * position);
        });
      }
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      const bool last = i + 1 == layers_.size();
      Epilogue<T> epilogue;
      epilogue.bias = layers_[i].bias_values;
      if (!last) epilogue.activation = op_.activation;
      if (!last && derivatives) epilogue.derivative = Derivative(rows, block, layers_[i]);
      MatMul<T>(layers_[i].forward, {{Input(rows, block, layers_[i])}},
                last ? Scores(rows, block) : Input(rows, block, layers_[i + 1]), epilogue);
    }
  }

  void CopyScores(const PanelLengths<T>& rows, Panels<const T> scores, Panels<T> w) const {
    for (int64_t t = 0; t < rows.longest; ++t) {
      ForEachVector<T>(
          [&](int64_t lane) { Save(&w.At(lane, t), Load(&scores.At(t * kPanelRows + lane, 0))); });
    }
  }

  void Softmax(const PanelLengths<T>& rows, Panels<const T> scores, Panels<T> w) const {
    ForEachVector<T>([&](int64_t lane) {
      const auto score = [&](int64_t t) { return Load(&scores.At(t * kPanelRows + lane, 0)); };
      if (rows.longest == 0) return;
      Vec<T> largest = score(0);
      for (int64_t t = 1; t < rows.longest; ++t) {
        const Vec<T> s = score(t);
        largest = rows.Select(lane, t, s > largest ? s : largest, largest);
      }
      Vec<T> sum = Broadcast(T{0});
      for (int64_t t = 0; t < rows.longest; ++t) {
        const Vec<T> e = Exp(score(t) - largest);
        Save(&w.At(lane, t), e);
        sum = rows.Select(lane, t, sum + e, sum);
      }
      for (int64_t t = 0; t < rows.longest; ++t) {
        Save(&w.At(lane, t), Load(&w.At(lane, t)) / sum);
      }
    });
  }

  // y = sum_t w_t h_t.
  void SumPositions(const PanelLengths<T>& rows, Panels<const T> x, Panels<const T> w,
                    Panels<T> y) const {
    for (int64_t f = 0; f < op_.width; ++f) {
      ForEachVector<T>([&](int64_t lane) {
        Vec<T> sum = Broadcast(T{0});
        for (int64_t t = 0; t < rows.longest; ++t) {
          const Vec<T> h = Load(&Field(x, op_.fields + t).At(lane, f));
          sum = rows.Select(lane, t, Fma(Load(&w.At(lane, t)), h, sum), sum);
        }
        Save(&y.At(lane, f), sum);
      });
    }
  }

  // ds_t from dw_t = sum_f dy_f h_tf.
  void ScoreGradients(const PanelLengths<T>& rows, Panels<const T> x, Panels<const T> w,
                      Panels<const T> dy, Panels<T> ds) const {
    const Vec<T> zero = Broadcast(T{0});
    ForEachVector<T>([&](int64_t lane) {
      const auto at = [&](int64_t t) { return &ds.At(t * kPanelRows + lane, 0); };
      Vec<T> mean = zero;  // softmax: sum_t w_t dw_t
      for (int64_t t = 0; t < rows.longest; ++t) {
        const Panels<const T> h = Field(x, op_.fields + t);
        Vec<T> dw = zero;
        for (int64_t f = 0; f < op_.width; ++f) {
          dw = Fma(Load(&dy.At(lane, f)), Load(&h.At(lane, f)), dw);
        }
        Save(at(t), rows.Select(lane, t, dw, zero));
        mean = rows.Select(lane, t, Fma(Load(&w.At(lane, t)), dw, mean), mean);
      }
      if (!op_.softmax) return;
      for (int64_t t = 0; t < rows.longest; ++t) {
        const Vec<T> gradient = Load(&w.At(lane, t)) * (Load(at(t)) - mean);
        Save(at(t), rows.Select(lane, t, gradient, zero));
      }
    });
  }

  // From ds, where the scores were, the gradients of the parameters to `sums` and that of the first
  // layer's input to its place.
  void LayerGradients(const PanelLengths<T>& rows, T* block, T* sums, Store store) const {
    Panels<T> dz = Scores(rows, block);
    for (int64_t i = op_.layers() - 1; i >= 0; --i) {
      const Layer& layer = layers_[i];
      const Panels<T> input = Input(rows, block, layer);
      WeightGradient<T>(dz, input, sums + layer.weight.sum, layer.in, store, precision_);
      if (layer.bias.number >= 0) BiasGradient<T>(dz, sums + layer.bias.sum, store);
      Epilogue<T> epilogue;
      Panels<T> gradient = input;
      if (i > 0) {
        gradient = Derivative(rows, block, layers_[i - 1]);
        epilogue.multiplier = gradient;
      }
      MatMul<T>(layer.transposed, {{dz}}, gradient, epilogue);
      dz = gradient;
    }
  }

  // dh_t, and what the target gets on top of its part of dy, from the gradient `inputs` of the
  // first layer's input.
  void InputGradients(const PanelLengths<T>& rows, Panels<const T> x, Panels<const T> w,
                      Panels<const T> dy, Panels<const T> inputs, Panels<T> dx) const {
    const int64_t k = op_.width;
    const Vec<T> zero = Broadcast(T{0});
    const Panels<const T> a = Field(x, op_.target);
    const Panels<T> da = Field(dx, op_.target);
    for (int64_t f = 0; f < k; ++f) {
      ForEachVector<T>([&](int64_t lane) {
        const Vec<T> target = Load(&a.At(lane, f));
        Vec<T> sum = zero;
        for (int64_t t = 0; t < rows.longest; ++t) {
          const Panels<const T> from = PanelOf(inputs, t);
          const auto part = [&](int64_t i) { return Load(&from.At(lane, i * k + f)); };
          const Vec<T> h = Load(&Field(x, op_.fields + t).At(lane, f));
          sum = rows.Select(lane, t, Fma(part(3), h, (sum + part(0)) + part(2)), sum);
          const Vec<T> dh = Fma(
              part(3), target, Fma(Load(&w.At(lane, t)), Load(&dy.At(lane, f)), part(1) - part(2)));
          Save(&Field(dx, op_.fields + t).At(lane, f), rows.Select(lane, t, dh, zero));
        }
        Save(&da.At(lane, f), Load(&da.At(lane, f)) + sum);
      });
    }
  }

  const TargetAttentionOp op_;
  const Precision precision_;
  const int weights_;  // saved: w [rows, L]
  std::vector<Layer> layers_;
  int64_t scores_ = 0;          // where s, then ds, begins in a panel's memory
  int64_t block_elements_ = 0;  // of a panel's memory
  int64_t gradients_ = 0;       // elements of all parameters
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(TargetAttentionOp, TargetAttentionKernel)

}  // namespace elastor
