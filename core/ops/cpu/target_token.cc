#include "core/ops/target_token.h"

#include "core/kernels/elementwise.h"
#include "core/ops/cpu/kernel.h"
#include "core/ops/cpu/panel_lengths.h"

namespace elastor {
namespace {

// Token t of x.
template <typename U>
Panels<U> Token(const TargetTokenOp& op, Panels<U> x, int64_t t) {
  return x.Slice(t * op.width, op.width);
}

// work(panel of the leaf, its lengths) for every panel of every leaf.
template <typename T, typename Work>
void ForEachPanel(const Pass<T>& pass, const TargetTokenOp& op, const Work& work) {
  for (const LeafRows& leaf : pass.leaves.leaves()) {
    const int64_t panels = (leaf.rows + kPanelRows - 1) / kPanelRows;
    for (int64_t p = 0; p < panels; ++p) {
      work(leaf.first_panel + p,
           PanelLengths<T>(pass, op.sequence, op.sequences, op.positions, leaf, p));
    }
  }
}

// to = `position` in the rows that have position t, `target` where t is one behind the last that
// they have, 0 elsewhere. An empty view is 0.
template <typename T>
void SelectToken(const PanelLengths<T>& rows, int64_t t, int64_t width, Panels<const T> position,
                 Panels<const T> target, Panels<T> to) {
  const Vec<T> zero = Broadcast(T{0});
  for (int64_t f = 0; f < width; ++f) {
    ForEachVector<T>([&](int64_t lane) {
      const auto value = [&](Panels<const T> from) {
        return from.data == nullptr ? zero : Load(&from.At(lane, f));
      };
      const Vec<T> behind = rows.Select(lane, t - 1, value(target), zero);
      Save(&to.At(lane, f), rows.Select(lane, t, value(position), behind));
    });
  }
}

// target = the token of x that stands behind the last position.
template <typename T>
void TargetOf(const PanelLengths<T>& rows, const TargetTokenOp& op, Panels<const T> x,
              Panels<T> target) {
  for (int64_t f = 0; f < op.width; ++f) {
    ForEachVector<T>([&](int64_t lane) {
      Vec<T> found = Load(&Token(op, x, 0).At(lane, f));
      for (int64_t t = 0; t < rows.longest; ++t) {
        found = rows.Select(lane, t, Load(&Token(op, x, t + 1).At(lane, f)), found);
      }
      Save(&target.At(lane, f), found);
    });
  }
}

template <typename T>
class AppendTargetKernel final : public CpuKernel<T> {
 public:
  AppendTargetKernel(const AppendTargetOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override { return {}; }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    ForEachPanel(pass, op_, [&](int64_t p, const PanelLengths<T>& rows) {
      const Panels<const T> e = PanelOf(operands.inputs[0], p);
      const Panels<T> x = PanelOf(operands.output, p);
      for (int64_t t = 0; t <= op_.positions; ++t) {
        const Panels<const T> position =
            t < op_.positions ? Token(op_, e, op_.fields + t) : Panels<const T>();
        SelectToken<T>(rows, t, op_.width, position, Token(op_, e, op_.target), Token(op_, x, t));
      }
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    Fill<T>(T{0}, operands.dinputs[0].Slice(0, op_.fields * op_.width));
    ForEachPanel(pass, op_, [&](int64_t p, const PanelLengths<T>& rows) {
      const Panels<const T> dx = PanelOf(operands.doutput, p);
      const Panels<T> de = PanelOf(operands.dinputs[0], p);
      TargetOf<T>(rows, op_, dx, Token(op_, de, op_.target));
      for (int64_t t = 0; t < op_.positions; ++t) {
        SelectToken<T>(rows, t, op_.width, Token(op_, dx, t), {}, Token(op_, de, op_.fields + t));
      }
    });
  }

 private:
  const AppendTargetOp op_;
};

template <typename T>
class ReadTargetKernel final : public CpuKernel<T> {
 public:
  ReadTargetKernel(const ReadTargetOp& op, CpuKernelContext*) : op_(op) {}
  KernelTraits traits() const override { return {}; }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    Copy<T>(operands.inputs[0].Slice(0, op_.fields * op_.width), operands.output);
    ForEachPanel(pass, op_, [&](int64_t p, const PanelLengths<T>& rows) {
      TargetOf<T>(rows, op_, PanelOf(operands.inputs[1], p),
                  Token(op_, PanelOf(operands.output, p), op_.field));
    });
  }

  void Backward(const Pass<T>& pass, const KernelMemory<T>&,
                const BackwardOperands<T>& operands) const override {
    const Panels<T> de = operands.dinputs[0];
    Copy<T>(operands.doutput, de.Slice(0, op_.fields * op_.width));
    Fill<T>(T{0}, Token(op_, de, op_.field));
    Fill<T>(T{0}, de.Slice(op_.fields * op_.width, op_.positions * op_.width));
    ForEachPanel(pass, op_, [&](int64_t p, const PanelLengths<T>& rows) {
      const Panels<const T> dtarget = Token(op_, PanelOf(operands.doutput, p), op_.field);
      const Panels<T> dx = PanelOf(operands.dinputs[1], p);
      for (int64_t t = 0; t <= op_.positions; ++t) {
        SelectToken<T>(rows, t, op_.width, {}, dtarget, Token(op_, dx, t));
      }
    });
  }

 private:
  const ReadTargetOp op_;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(AppendTargetOp, AppendTargetKernel)
ELASTOR_DEFINE_CPU_KERNEL(ReadTargetOp, ReadTargetKernel)

}  // namespace elastor
