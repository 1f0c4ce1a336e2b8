#include "core/ops/attention.h"

#include <limits>

#include "core/base/random.h"
#include "core/kernels/elementwise.h"
#include "core/ops/cpu/deliver.h"
#include "core/ops/cpu/kernel.h"
#include "core/ops/cpu/panel_lengths.h"

namespace elastor {
namespace {

template <typename T>
class AttentionKernel final : public CpuKernel<T> {
 public:
  AttentionKernel(const AttentionOp& op, CpuKernelContext* context)
      : op_(op), shape_(op.attention) {
    if (op.sequence >= 0) lengths_ = context->Save(1);
    if (!op.position_bias) return;
    bias_ = context->parameter(0);
    bias_offset_ = context->offset(0);
    CHECK_EQ(context->info(0).size, shape_.differences()) << context->info(0).name;
    row_gradients_ = context->Save(shape_.differences());
    context->Scratch(LeafSumElements(shape_.differences()));
  }

  KernelTraits traits() const override { return {.reads_inputs = kMaxInputs}; }

  void Prepare(const T* parameters) override {
    if (bias_ >= 0) bias_values_ = parameters + bias_offset_;
  }

  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    const Panels<T> lengths = Saved(memory, lengths_);
    if (lengths_ >= 0) CountKeys(pass, lengths);
    ForRows(pass, [&](const auto& rows, const DropoutKey& dropout) {
      const auto& in = operands.inputs;
      AttentionForward<T>(shape_, rows(in[0]), rows(in[1]), rows(in[2]), rows(lengths),
                          bias_values_, dropout, rows(operands.output));
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    const Panels<T> lengths = Saved(memory, lengths_);
    const Panels<T> row_gradients = Saved(memory, row_gradients_);
    ForRows(pass, [&](const auto& rows, const DropoutKey& dropout) {
      const auto& in = operands.inputs;
      const auto& din = operands.dinputs;
      AttentionBackward<T>(shape_, rows(in[0]), rows(in[1]), rows(in[2]), rows(lengths),
                           bias_values_, dropout, rows(operands.doutput), rows(din[0]),
                           rows(din[1]), rows(din[2]), rows(row_gradients));
    });
    if (bias_ < 0) return;
    SumOverLeaves(pass.leaves.leaves(), shape_.differences(), memory.scratch(),
                  [&](const LeafRows& leaf, T* db) {
                    BiasGradient<T>(leaf.Of(row_gradients), db, Store::kOverwrite);
                  });
    DeliverCopy(pass.sink, bias_, shape_.differences(), memory.scratch());
  }

 private:
  static Panels<T> Saved(const KernelMemory<T>& memory, int slot) {
    return slot < 0 ? Panels<T>() : memory.Saved(slot);
  }

  // The row's positions and the other keys. Attention need not see all positions of a sequence.
  void CountKeys(const Pass<T>& pass, Panels<T> keys) const {
    constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      for (int64_t p = 0; p < leaf.Of(keys).panels(); ++p) {
        const Panels<T> to = PanelOf(leaf.Of(keys), p);
        for (int64_t i = 0; i < kPanelRows; ++i) to.At(i, 0) = static_cast<T>(op_.others);
        for (int64_t s = 0; s < op_.read_sequences; ++s) {
          const PanelLengths<T> rows(pass, op_.sequence + s, op_.sequences, kAny, leaf, p);
          for (int64_t i = 0; i < kPanelRows; ++i) to.At(i, 0) += rows.lengths[i];
        }
      }
    }
  }

  // work(rows, dropout), where rows(view) are those of a part of a leaf, on the pass's threads.
  template <typename Work>
  void ForRows(const Pass<T>& pass, const Work& work) const {
    DropoutKey leaf_key;
    leaf_key.key = MakeRandomKey(pass.seed, RandomPurpose::kAttentionDropout, op_.dropout_layer);
    leaf_key.step = pass.step;
    leaf_key.rate = pass.training ? op_.dropout : 0;
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      pass.Share(leaf.rows, [&](int64_t begin, int64_t end) {
        DropoutKey key = leaf_key;
        key.first_row = pass.first_row + leaf.first_row + begin;
        const auto rows = [&](auto view) {
          return view.data == nullptr ? view : leaf.Of(view).Rows(begin, end - begin);
        };
        work(rows, key);
      });
    }
  }

  const AttentionOp op_;
  const AttentionShape shape_;
  int lengths_ = -1;  // saved: how many keys a row has
  int bias_ = -1;
  int64_t bias_offset_ = 0;
  int row_gradients_ = -1;  // saved: every row's gradient of the position bias
  const T* bias_values_ = nullptr;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(AttentionOp, AttentionKernel)

}  // namespace elastor
