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
template <typename T, typename AnyOp, typename Work>
void ForEachPanel(const Pass<T>& pass, const AnyOp& op, const Work& work) {
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

// Token t of a row of a panel = token `of` of that row of `from`, or 0 where the view is empty.
template <typename T>
void CopyToken(int64_t row, int64_t width, Panels<const T> from, int64_t of, Panels<T> to,
               int64_t t) {
  for (int64_t f = 0; f < width; ++f) {
    to.At(row, t * width + f) = from.data == nullptr ? T{0} : from.At(row, of * width + f);
  }
}

// work(panel of the leaf, row of the panel, its length) for every row.
template <typename T, typename Work>
void ForEachRow(const Pass<T>& pass, const AppendHistoryOp& op, const Work& work) {
  ForEachPanel(pass, op, [&](int64_t p, const PanelLengths<T>& rows) {
    for (int64_t row = 0; row < kPanelRows; ++row) {
      work(p, row, static_cast<int64_t>(rows.lengths[row]));
    }
  });
}

}  // namespace

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const AppendHistoryOp& op, CpuKernelContext*) {
  const auto forward = [op](const Pass<T>& pass, const ForwardOperands<T>& o) {
    ForEachRow(pass, op, [&](int64_t p, int64_t row, int64_t length) {
      const int64_t moved = op.positions - length;
      for (int64_t t = 0; t < op.tokens(); ++t) {
        const int64_t of_z = t - moved;
        const bool of_x = of_z >= op.before;
        const Panels<const T> from = of_x        ? PanelOf(o.inputs[0], p)
                                     : of_z >= 0 ? PanelOf(o.inputs[1], p)
                                                 : Panels<const T>();
        const int64_t from_x = (op.last ? t : of_z) - op.before;
        CopyToken<T>(row, op.width, from, of_x ? from_x : of_z, PanelOf(o.output, p), t);
      }
    });
  };
  const auto backward = [op](const Pass<T>& pass, const BackwardOperands<T>& o) {
    ForEachRow(pass, op, [&](int64_t p, int64_t row, int64_t length) {
      const Panels<const T> dy = PanelOf(o.doutput, p);
      const int64_t moved = op.positions - length;
      for (int64_t t = 0; t < op.positions + op.behind; ++t) {
        const bool there = op.last ? t >= moved : t < length;
        CopyToken<T>(row, op.width, there ? dy : Panels<const T>(),
                     op.before + t + (op.last ? 0 : moved), PanelOf(o.dinputs[0], p), t);
      }
      for (int64_t t = 0; t < op.before; ++t) {
        CopyToken<T>(row, op.width, dy, t + moved, PanelOf(o.dinputs[1], p), t);
      }
    });
  };
  return KernelOf<T>({}, forward, backward);
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const AppendTargetOp& op, CpuKernelContext*) {
  const auto forward = [op](const Pass<T>& pass, const ForwardOperands<T>& o) {
    ForEachPanel(pass, op, [&](int64_t p, const PanelLengths<T>& rows) {
      const Panels<const T> e = PanelOf(o.inputs[0], p);
      const Panels<T> x = PanelOf(o.output, p);
      for (int64_t t = 0; t <= op.positions; ++t) {
        const Panels<const T> position =
            t < op.positions ? Token(op, e, op.fields + t) : Panels<const T>();
        SelectToken<T>(rows, t, op.width, position, Token(op, e, op.target), Token(op, x, t));
      }
    });
  };
  const auto backward = [op](const Pass<T>& pass, const BackwardOperands<T>& o) {
    Fill<T>(T{0}, o.dinputs[0].Slice(0, op.fields * op.width));
    ForEachPanel(pass, op, [&](int64_t p, const PanelLengths<T>& rows) {
      const Panels<const T> dx = PanelOf(o.doutput, p);
      const Panels<T> de = PanelOf(o.dinputs[0], p);
      TargetOf<T>(rows, op, dx, Token(op, de, op.target));
      for (int64_t t = 0; t < op.positions; ++t) {
        SelectToken<T>(rows, t, op.width, Token(op, dx, t), {}, Token(op, de, op.fields + t));
      }
    });
  };
  return KernelOf<T>({}, forward, backward);
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const ReadTargetOp& op, CpuKernelContext*) {
  const auto forward = [op](const Pass<T>& pass, const ForwardOperands<T>& o) {
    Copy<T>(o.inputs[0].Slice(0, op.fields * op.width), o.output);
    ForEachPanel(pass, op, [&](int64_t p, const PanelLengths<T>& rows) {
      TargetOf<T>(rows, op, PanelOf(o.inputs[1], p), Token(op, PanelOf(o.output, p), op.field));
    });
  };
  const auto backward = [op](const Pass<T>& pass, const BackwardOperands<T>& o) {
    const Panels<T> de = o.dinputs[0];
    Copy<T>(o.doutput, de.Slice(0, op.fields * op.width));
    Fill<T>(T{0}, Token(op, de, op.field));
    Fill<T>(T{0}, de.Slice(op.fields * op.width, op.positions * op.width));
    ForEachPanel(pass, op, [&](int64_t p, const PanelLengths<T>& rows) {
      const Panels<const T> dtarget = Token(op, PanelOf(o.doutput, p), op.field);
      const Panels<T> dx = PanelOf(o.dinputs[1], p);
      for (int64_t t = 0; t <= op.positions; ++t) {
        SelectToken<T>(rows, t, op.width, {}, dtarget, Token(op, dx, t));
      }
    });
  };
  return KernelOf<T>({}, forward, backward);
}

ELASTOR_INSTANTIATE_CPU_KERNEL(AppendHistoryOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(AppendTargetOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(ReadTargetOp)

}  // namespace elastor
