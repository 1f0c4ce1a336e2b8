#include "core/ops/compressed_interaction.h"

#include "core/kernels/elementwise.h"
#include "core/kernels/matmul.h"
#include "core/kernels/pair_products.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

// Memory of a thread: activations of `features`. Lives until the thread's next call.
template <typename T, int kUse>
Panels<T> ThreadActivations(int64_t rows, int64_t features) {
  thread_local std::vector<T> memory;
  memory.resize(std::max(memory.size(), static_cast<size_t>(PanelElements(rows, features))));
  return {memory.data(), rows, features, PanelStride(features)};
}
constexpr int kProducts = 0;
constexpr int kSums = 1;

// The products of the pairs are made where they are used and never kept: of a few panels of rows
// forward and for the gradient of the inputs, of some pairs for the gradient of W.
template <typename T>
class CompressedInteractionKernel final : public CpuKernel<T> {
 public:
  CompressedInteractionKernel(const CompressedInteractionOp& op, CpuKernelContext* context)
      : op_(op),
        weight_(context->parameter(0)),
        bias_(context->parameter(1)),
        weight_offset_(context->offset(0)),
        bias_offset_(context->offset(1)),
        precision_(context->precision()),
        forward_(precision_),
        transposed_(precision_) {
    CHECK_EQ(context->info(0).size, op.maps * op.first * op.b_tokens()) << context->info(0).name;
    CHECK_EQ(context->info(1).size, op.maps) << context->info(1).name;
    for (int32_t i = 0; i < op.first; ++i) {
      for (int32_t j = op.one_input() ? i : 0; j < op.b_tokens(); ++j) pairs_.push_back({i, j});
    }
    factors_.resize(op.maps * op.pairs());
    forward_.Reshape(op.maps, op.pairs());
    transposed_.Reshape(op.pairs(), op.maps);
    context->Scratch(LeafSumElements(op.maps * (op.pairs() + 1)));
  }

  KernelTraits traits() const override {
    return {.reads_inputs = op_.one_input() ? 1 : 2, .adds_addend = true};
  }

  void Prepare(const T* parameters) override {
    bias_values_ = parameters + bias_offset_;
    const T* const w = parameters + weight_offset_;
    for (int64_t h = 0; h < op_.maps; ++h) {
      for (int64_t q = 0; q < op_.pairs(); ++q) {
        const auto [i, j] = pairs_[q];
        T factor = w[At(h, i, j)];
        if (op_.one_input() && i != j) factor += w[At(h, j, i)];
        factors_[h * op_.pairs() + q] = factor;
      }
    }
  }
  void Repack(const T*, int part, int parts) override {
    const auto w = MatrixView<T>::RowMajor(factors_.data(), op_.maps, op_.pairs());
    forward_.PackPart({{w}}, part, parts);
    transposed_.PackPart({{w.Transposed()}}, part, parts);
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    Epilogue<T> epilogue;
    epilogue.bias = bias_values_;
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      ForEachColumn(begin, end, [&](int64_t row, int64_t rows, int64_t d) {
        const Panels<T> z = ThreadActivations<T, kProducts>(rows, op_.pairs());
        PairProducts<T>(First(operands.inputs, d).Rows(row, rows),
                        Second(operands.inputs, d).Rows(row, rows), pairs_, z);
        MatMul<T>(forward_, {{z}}, Column(operands.output, d, op_.maps).Rows(row, rows), epilogue);
      });
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    DeliverGradients(pass, memory, operands);
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      ForEachColumn(begin, end, [&](int64_t row, int64_t rows, int64_t d) {
        const Panels<T> dz = ThreadActivations<T, kProducts>(rows, op_.pairs());
        MatMul<T>(transposed_, {{Column(operands.doutput, d, op_.maps).Rows(row, rows)}}, dz, {});
        const int64_t sums = op_.first + (op_.one_input() ? 0 : op_.b_tokens());
        const Panels<T> both = ThreadActivations<T, kSums>(rows, sums);
        Fill<T>(T{0}, both);
        const Panels<T> da = both.Slice(0, op_.first);
        const Panels<T> db = op_.one_input() ? da : both.Slice(op_.first, op_.b_tokens());
        PairProductsBackward<T>(dz, First(operands.inputs, d).Rows(row, rows),
                                Second(operands.inputs, d).Rows(row, rows), pairs_, da, db);
        // The second input's gradient is stored first, since the first input's addend may be that
        // gradient.
        const auto store = [&](int input, Panels<const T> gradient) {
          const auto part = [&](auto view) {
            return Column(view, d, gradient.features).Rows(row, rows);
          };
          if (operands.addends[input].data == nullptr) {
            Copy<T>(gradient, part(operands.dinputs[input]));
          } else {
            Add<T>(gradient, part(operands.addends[input]), part(operands.dinputs[input]));
          }
        };
        if (!op_.one_input()) store(1, db);
        store(0, da);
      });
    });
  }

 private:
  int64_t At(int64_t h, int64_t i, int64_t j) const {
    return (h * op_.first + i) * op_.b_tokens() + j;
  }

  // Column d of every token.
  template <typename U>
  Panels<U> Column(Panels<U> view, int64_t d, int64_t tokens) const {
    return view.Every(d, op_.width, tokens);
  }
  Panels<const T> First(const Panels<const T>* inputs, int64_t d) const {
    return Column(inputs[0], d, op_.first);
  }
  Panels<const T> Second(const Panels<const T>* inputs, int64_t d) const {
    return Column(inputs[op_.one_input() ? 0 : 1], d, op_.b_tokens());
  }

  // Calls work(row, rows, d) for every column of a few rows after another, whose products stay in
  // the second-level cache.
  template <typename Work>
  void ForEachColumn(int64_t begin, int64_t end, const Work& work) const {
    constexpr int64_t kRows = 2 * kPanelRows;
    for (int64_t row = begin; row < end; row += kRows) {
      for (int64_t d = 0; d < op_.width; ++d) work(row, std::min(kRows, end - row), d);
    }
  }

  void DeliverGradients(const Pass<T>& pass, const KernelMemory<T>& memory,
                        const BackwardOperands<T>& operands) const {
    constexpr int64_t kProductElements = 1 << 15;  // that stay in the second-level cache
    const int64_t weights = op_.maps * op_.pairs();
    T* const sums = memory.scratch();  // a leaf's dW, by pairs, and behind it its dbias
    SumOverLeaves(pass.leaves.leaves(), weights + op_.maps, sums, [&](const LeafRows& leaf, T* dw) {
      const int64_t panels = (leaf.rows + kPanelRows - 1) / kPanelRows;
      const int64_t some = std::max<int64_t>(16, kProductElements / (panels * kPanelRows));
      pass.Share(op_.maps, [&](int64_t begin, int64_t end) {
        for (int64_t d = 0; d < op_.width; ++d) {
          const Store store = d == 0 ? Store::kOverwrite : Store::kAdd;
          const Panels<const T> dy =
              leaf.Of(Column(operands.doutput, d, op_.maps).Slice(begin, end - begin));
          for (int64_t q = 0; q < op_.pairs(); q += some) {
            const int64_t count = std::min(some, op_.pairs() - q);
            const Panels<T> z = ThreadActivations<T, kProducts>(leaf.rows, count);
            PairProducts<T>(leaf.Of(First(operands.inputs, d)), leaf.Of(Second(operands.inputs, d)),
                            std::span(pairs_).subspan(q, count), z);
            WeightGradient<T>(dy, z, dw + begin * op_.pairs() + q, op_.pairs(), store, precision_);
          }
          BiasGradient<T>(dy, dw + weights + begin, store);
        }
      });
    });
    DeliverParts(pass.sink, weight_, op_.first * op_.b_tokens(), op_.maps,
                 [&](int64_t h, T* dw, Store store) {
                   for (int64_t q = 0; q < op_.pairs(); ++q) {
                     const auto [i, j] = pairs_[q];
                     const T sum = sums[h * op_.pairs() + q];
                     const auto put = [&](T& to) { to = store == Store::kAdd ? to + sum : sum; };
                     put(dw[At(0, i, j)]);
                     if (op_.one_input() && i != j) put(dw[At(0, j, i)]);
                   }
                 });
    DeliverCopy(pass.sink, bias_, op_.maps, sums + weights);
  }

  const CompressedInteractionOp op_;
  int weight_;
  int bias_;
  int64_t weight_offset_;
  int64_t bias_offset_;
  Precision precision_;
  std::vector<FeaturePair> pairs_;  // of tokens
  std::vector<T> factors_;          // [maps, pairs]
  PackedMatrix<T> forward_;
  PackedMatrix<T> transposed_;
  const T* bias_values_ = nullptr;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(CompressedInteractionOp, CompressedInteractionKernel)

}  // namespace elastor
