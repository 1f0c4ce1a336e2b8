// Kernels of ops without parameters: they call one kernel of core/kernels/elementwise.h each.
#include "core/kernels/elementwise.h"

#include "core/base/random.h"
#include "core/ops/add.h"
#include "core/ops/block_transpose.h"
#include "core/ops/concat.h"
#include "core/ops/cpu/kernel.h"
#include "core/ops/dropout.h"
#include "core/ops/mean_pool.h"
#include "core/ops/multiply.h"
#include "core/ops/pad.h"
#include "core/ops/relu.h"
#include "core/ops/slice.h"
#include "core/ops/sum_pool.h"

namespace elastor {
namespace {

template <typename T>
class AddKernel final : public CpuKernel<T> {
 public:
  AddKernel(const AddOp&, CpuKernelContext*) {}
  KernelTraits traits() const override { return {.in_place_inputs = 2}; }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    Add<T>(operands.inputs[0], operands.inputs[1], operands.output);
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&, const BackwardOperands<T>&) const override {
  }
};

template <typename T>
class BlockTransposeKernel final : public CpuKernel<T> {
 public:
  BlockTransposeKernel(const BlockTransposeOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override { return {}; }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    Transpose(operands.inputs[0], operands.output);
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    Transpose(operands.doutput, operands.dinputs[0]);
  }

 private:
  void Transpose(Panels<const T> x, Panels<T> y) const {
    const int64_t features = op_.tokens * op_.width;
    for (int64_t i = 0; i < op_.count; ++i) {
      BlockTranspose<T>(op_.tokens, op_.width, x.Slice(i * features, features),
                        y.Slice(i * features, features));
    }
  }

  const BlockTransposeOp op_;
};

template <typename T>
class ConcatKernel final : public CpuKernel<T> {
 public:
  ConcatKernel(const ConcatOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override { return {}; }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    const Panels<T> y = operands.output;
    Copy<T>(operands.inputs[0], y.Slice(0, op_.first_features));
    Copy<T>(operands.inputs[1], y.Slice(op_.first_features, y.features - op_.first_features));
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&, const BackwardOperands<T>&) const override {
  }

 private:
  const ConcatOp op_;
};

template <typename T>
class DropoutKernel final : public CpuKernel<T> {
 public:
  DropoutKernel(const DropoutOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override {
    return {.in_place_inputs = 1, .keeps_sign = true, .gradient_in_place = true};
  }
  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    if (pass.training) {
      Mask(pass, operands.inputs[0], operands.output);
    } else if (operands.output.data != operands.inputs[0].data) {
      Copy<T>(operands.inputs[0], operands.output);
    }
  }
  void Backward(const Pass<T>& pass, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    Mask(pass, operands.doutput, operands.dinputs[0]);
  }

 private:
  void Mask(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const {
    DropoutKey key;
    key.key = MakeRandomKey(pass.seed, RandomPurpose::kDropout, op_.layer);
    key.step = pass.step;
    key.rate = op_.rate;
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      pass.Share(leaf.rows, [&](int64_t begin, int64_t end) {
        DropoutKey part = key;
        part.first_row = pass.first_row + leaf.first_row + begin;
        Dropout<T>(part, leaf.Of(x).Rows(begin, end - begin), leaf.Of(y).Rows(begin, end - begin));
      });
    }
  }

  const DropoutOp op_;
};

template <typename T>
class MeanPoolKernel final : public CpuKernel<T> {
 public:
  MeanPoolKernel(const MeanPoolOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override { return {}; }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    MeanPool<T>(op_.tokens, op_.width, operands.inputs[0], operands.output);
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    MeanPoolBackward<T>(op_.tokens, op_.width, operands.doutput, operands.dinputs[0]);
  }

 private:
  const MeanPoolOp op_;
};

template <typename T>
class MultiplyKernel final : public CpuKernel<T> {
 public:
  MultiplyKernel(const MultiplyOp&, CpuKernelContext*) {}
  KernelTraits traits() const override { return {.reads_inputs = 2}; }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    Multiply<T>(operands.inputs[0], operands.inputs[1], operands.output);
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    for (const int i : {0, 1}) {
      Multiply<T>(operands.doutput, operands.inputs[1 - i], operands.dinputs[i]);
    }
  }
};

template <typename T>
class PadKernel final : public CpuKernel<T> {
 public:
  PadKernel(const PadOp& op, CpuKernelContext* context)
      : padding_(op.tokens * op.width - context->input_features(0)) {}
  KernelTraits traits() const override {
    return {.extends_input = padding_ > 0, .repeats_input = padding_ == 0};
  }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    const Panels<const T> x = operands.inputs[0];
    const Panels<T> y = operands.output;
    if (x.data != y.data) Copy<T>(x, y.Slice(0, x.features));
    if (padding_ > 0) Fill<T>(T{0}, y.Slice(x.features, padding_));
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&, const BackwardOperands<T>&) const override {
  }

 private:
  int64_t padding_;  // features
};

template <typename T>
class ReluKernel final : public CpuKernel<T> {
 public:
  ReluKernel(const ReluOp&, CpuKernelContext* context)
      : derivative_(context->Save(context->input_features(0))) {}
  KernelTraits traits() const override { return {.in_place_inputs = 1, .gradient_in_place = true}; }
  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      Relu<T>(rows(operands.inputs[0]), rows(operands.output), rows(memory.Saved(derivative_)));
    });
  }
  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      Multiply<T>(rows(operands.doutput), rows(Panels<const T>(memory.Saved(derivative_))),
                  rows(operands.dinputs[0]));
    });
  }

 private:
  int derivative_;  // saved: 1 where x > 0, else 0
};

template <typename T>
class SliceKernel final : public CpuKernel<T> {
 public:
  SliceKernel(const SliceOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override {
    return {
        .repeats_input = op_.one_run(), .first_repeated = op_.first_feature(), .adds_addend = true};
  }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    if (op_.one_run()) return;  // it is x itself
    ForEachRun(operands.inputs[0], operands.output,
               [](Panels<const T> x, Panels<T> y) { Copy<T>(x, y); });
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    const Panels<T> dx = operands.dinputs[0];
    const Panels<const T> addend = operands.addends[0];
    if (addend.data == nullptr) {
      Fill<T>(T{0}, dx);
    } else if (addend.data != dx.data) {
      Copy<T>(addend, dx);
    }
    ForEachRun(dx, operands.doutput,
               [](Panels<T> sum, Panels<const T> dy) { Add<T>(sum, dy, sum); });
  }

 private:
  // Calls work(of x, of y) for every run of features that lie together in both.
  template <typename X, typename Y, typename Work>
  void ForEachRun(Panels<X> x, Panels<Y> y, const Work& work) const {
    const int64_t runs = op_.one_run() ? 1 : op_.slice.tokens;
    const int64_t length = y.features / runs;
    for (int64_t i = 0; i < runs; ++i) {
      work(x.Slice(op_.first_feature() + i * op_.width, length), y.Slice(i * length, length));
    }
  }

  const SliceOp op_;
};

template <typename T>
class SumPoolKernel final : public CpuKernel<T> {
 public:
  SumPoolKernel(const SumPoolOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override { return {}; }
  void Forward(const Pass<T>&, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    SumPool<T>(op_.tokens, op_.width, operands.inputs[0], operands.output);
  }
  void Backward(const Pass<T>&, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    for (int64_t f = 0; f < op_.width; ++f) {
      Copy<T>(operands.doutput, operands.dinputs[0].Every(f, op_.width, op_.tokens));
    }
  }

 private:
  const SumPoolOp op_;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(AddOp, AddKernel)
ELASTOR_DEFINE_CPU_KERNEL(BlockTransposeOp, BlockTransposeKernel)
ELASTOR_DEFINE_CPU_KERNEL(ConcatOp, ConcatKernel)
ELASTOR_DEFINE_CPU_KERNEL(DropoutOp, DropoutKernel)
ELASTOR_DEFINE_CPU_KERNEL(MeanPoolOp, MeanPoolKernel)
ELASTOR_DEFINE_CPU_KERNEL(MultiplyOp, MultiplyKernel)
ELASTOR_DEFINE_CPU_KERNEL(PadOp, PadKernel)
ELASTOR_DEFINE_CPU_KERNEL(ReluOp, ReluKernel)
ELASTOR_DEFINE_CPU_KERNEL(SliceOp, SliceKernel)
ELASTOR_DEFINE_CPU_KERNEL(SumPoolOp, SumPoolKernel)

}  // namespace elastor
