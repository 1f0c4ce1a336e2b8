// Kernels of ops without parameters: they call one or two kernels of core/kernels/elementwise.h.
#include "core/kernels/elementwise.h"

#include "core/base/random.h"
#include "core/ops/add.h"
#include "core/ops/block_transpose.h"
#include "core/ops/concat.h"
#include "core/ops/cpu/kernel.h"
#include "core/ops/dropout.h"
#include "core/ops/factorization_pool.h"
#include "core/ops/joint_logit.h"
#include "core/ops/mean_logit.h"
#include "core/ops/mean_pool.h"
#include "core/ops/multiply.h"
#include "core/ops/pad.h"
#include "core/ops/relu.h"
#include "core/ops/sigmoid_gate.h"
#include "core/ops/slice.h"
#include "core/ops/sum_pool.h"
#include "core/ops/upper_triangle.h"

namespace elastor {
namespace {

template <typename T>
void TransposeBlocks(const BlockTransposeOp& op, Panels<const T> x, Panels<T> y) {
  const int64_t features = op.tokens * op.width;
  for (int64_t i = 0; i < op.count; ++i) {
    BlockTranspose<T>(op.tokens, op.width, x.Slice(i * features, features),
                      y.Slice(i * features, features));
  }
}

template <typename T>
void Mask(const DropoutOp& op, const Pass<T>& pass, Panels<const T> x, Panels<T> y) {
  DropoutKey key;
  key.key = MakeRandomKey(pass.seed, RandomPurpose::kDropout, op.layer);
  key.step = pass.step;
  key.rate = op.rate;
  for (const LeafRows& leaf : pass.leaves.leaves()) {
    pass.Share(leaf.rows, [&](int64_t begin, int64_t end) {
      DropoutKey part = key;
      part.first_row = pass.first_row + leaf.first_row + begin;
      Dropout<T>(part, leaf.Of(x).Rows(begin, end - begin), leaf.Of(y).Rows(begin, end - begin));
    });
  }
}

// Calls work(of x, of y) for every run of features that lie together in both.
template <typename X, typename Y, typename Work>
void ForEachRun(const SliceOp& op, Panels<X> x, Panels<Y> y, const Work& work) {
  const int64_t runs = op.one_run() ? 1 : op.slice.tokens;
  const int64_t length = y.features / runs;
  for (int64_t i = 0; i < runs; ++i) {
    work(x.Slice(op.first_feature() + i * op.width, length), y.Slice(i * length, length));
  }
}

// Calls work(of x, of y) for the part of every row of the matrix x that stands in the triangle y.
template <typename X, typename Y, typename Work>
void ForEachRun(const UpperTriangleOp& op, Panels<X> x, Panels<Y> y, const Work& work) {
  int64_t first = 0;
  for (int64_t i = 0; i + 1 < op.size; ++i) {
    const int64_t length = op.size - 1 - i;
    work(x.Slice(i * op.size + i + 1, length), y.Slice(first, length));
    first += length;
  }
}

}  // namespace

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const AddOp&, CpuKernelContext*) {
  return KernelOf<T>(
      {.in_place_inputs = 2},
      [](const ForwardOperands<T>& o) { Add<T>(o.inputs[0], o.inputs[1], o.output); },
      NothingToCompute());
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const BlockTransposeOp& op, CpuKernelContext*) {
  return KernelOf<T>(
      {}, [op](const ForwardOperands<T>& o) { TransposeBlocks<T>(op, o.inputs[0], o.output); },
      [op](const BackwardOperands<T>& o) { TransposeBlocks<T>(op, o.doutput, o.dinputs[0]); });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const ConcatOp& op, CpuKernelContext*) {
  const auto forward = [first = op.first_features](const ForwardOperands<T>& o) {
    Copy<T>(o.inputs[0], o.output.Slice(0, first));
    Copy<T>(o.inputs[1], o.output.Slice(first, o.output.features - first));
  };
  return KernelOf<T>({}, forward, NothingToCompute());
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const DropoutOp& op, CpuKernelContext*) {
  const auto forward = [op](const Pass<T>& pass, const ForwardOperands<T>& o) {
    if (pass.training) {
      Mask<T>(op, pass, o.inputs[0], o.output);
    } else if (o.output.data != o.inputs[0].data) {
      Copy<T>(o.inputs[0], o.output);
    }
  };
  return KernelOf<T>({.in_place_inputs = 1, .keeps_sign = true, .gradient_in_place = true}, forward,
                     [op](const Pass<T>& pass, const BackwardOperands<T>& o) {
                       Mask<T>(op, pass, o.doutput, o.dinputs[0]);
                     });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const FactorizationPoolOp& op, CpuKernelContext*) {
  return KernelOf<T>(
      {.reads_inputs = 1},
      [op](const ForwardOperands<T>& o) {
        FactorizationPool<T>(op.tokens, op.width, o.inputs[0], o.output);
      },
      [op](const BackwardOperands<T>& o) {
        FactorizationPoolBackward<T>(op.tokens, op.width, o.inputs[0], o.doutput, o.dinputs[0]);
      });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const JointLogitOp&, CpuKernelContext*) {
  return KernelOf<T>(
      {.reads_inputs = 1},
      [](const ForwardOperands<T>& o) { JointLogit<T>(o.inputs[0], o.output); },
      [](const BackwardOperands<T>& o) {
        JointLogitBackward<T>(o.inputs[0], o.doutput, o.dinputs[0]);
      });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const MeanLogitOp&, CpuKernelContext* context) {
  const int64_t count = context->input_features(0);
  return KernelOf<T>(
      {},
      [count](const ForwardOperands<T>& o) {
        MeanPool<T>(count, 1, o.inputs[0], o.output.Slice(0, 1));
        Copy<T>(o.inputs[0], o.output.Slice(1, count));
      },
      [count](const BackwardOperands<T>& o) {
        MeanPoolBackward<T>(count, 1, o.doutput.Slice(0, 1), o.dinputs[0]);
        Add<T>(o.doutput.Slice(1, count), o.dinputs[0], o.dinputs[0]);
      });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const MeanPoolOp& op, CpuKernelContext*) {
  return KernelOf<T>(
      {},
      [op](const ForwardOperands<T>& o) {
        MeanPool<T>(op.tokens, op.width, o.inputs[0], o.output);
      },
      [op](const BackwardOperands<T>& o) {
        MeanPoolBackward<T>(op.tokens, op.width, o.doutput, o.dinputs[0]);
      });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const MultiplyOp&, CpuKernelContext*) {
  return KernelOf<T>(
      {.reads_inputs = 2},
      [](const ForwardOperands<T>& o) { Multiply<T>(o.inputs[0], o.inputs[1], o.output); },
      [](const BackwardOperands<T>& o) {
        for (const int i : {0, 1}) Multiply<T>(o.doutput, o.inputs[1 - i], o.dinputs[i]);
      });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const PadOp& op, CpuKernelContext* context) {
  const int64_t padding = op.tokens * op.width - context->input_features(0);
  const auto forward = [padding](const ForwardOperands<T>& o) {
    const Panels<const T> x = o.inputs[0];
    if (x.data != o.output.data) Copy<T>(x, o.output.Slice(0, x.features));
    if (padding > 0) Fill<T>(T{0}, o.output.Slice(x.features, padding));
  };
  return KernelOf<T>({.extends_input = padding > 0, .repeats_input = padding == 0}, forward,
                     NothingToCompute());
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const ReluOp&, CpuKernelContext*) {
  const auto forward = [](const Pass<T>& pass, const ForwardOperands<T>& o) {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      Relu<T>(rows(o.inputs[0]), rows(o.output));
    });
  };
  const auto backward = [](const Pass<T>& pass, const BackwardOperands<T>& o) {
    pass.Share(pass.rows(), [&](int64_t begin, int64_t end) {
      const auto rows = [&](auto view) { return view.Rows(begin, end - begin); };
      ReluBackward<T>(rows(o.output), rows(o.doutput), rows(o.dinputs[0]));
    });
  };
  return KernelOf<T>({.in_place_inputs = 1,
                      .reads_output = KernelTraits::OutputRead::kSign,
                      .gradient_in_place = true},
                     forward, backward);
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const SigmoidGateOp&, CpuKernelContext*) {
  return KernelOf<T>(
      {.reads_inputs = 2},
      [](const ForwardOperands<T>& o) { SigmoidGate<T>(o.inputs[0], o.inputs[1], o.output); },
      [](const BackwardOperands<T>& o) {
        SigmoidGateBackward<T>(o.inputs[0], o.inputs[1], o.doutput, o.dinputs[0], o.dinputs[1]);
      });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const SliceOp& op, CpuKernelContext*) {
  const auto forward = [op](const ForwardOperands<T>& o) {
    if (op.one_run()) return;  // it is x itself
    ForEachRun(op, o.inputs[0], o.output, [](Panels<const T> x, Panels<T> y) { Copy<T>(x, y); });
  };
  const auto backward = [op](const BackwardOperands<T>& o) {
    const Panels<T> dx = o.dinputs[0];
    const Panels<const T> addend = o.addends[0];
    if (addend.data == nullptr) {
      Fill<T>(T{0}, dx);
    } else if (addend.data != dx.data) {
      Copy<T>(addend, dx);
    }
    ForEachRun(op, dx, o.doutput, [](Panels<T> sum, Panels<const T> dy) { Add<T>(sum, dy, sum); });
  };
  return KernelOf<T>(
      {.repeats_input = op.one_run(), .first_repeated = op.first_feature(), .adds_addend = true},
      forward, backward);
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const SumPoolOp& op, CpuKernelContext*) {
  return KernelOf<T>(
      {},
      [op](const ForwardOperands<T>& o) { SumPool<T>(op.tokens, op.width, o.inputs[0], o.output); },
      [op](const BackwardOperands<T>& o) {
        for (int64_t f = 0; f < op.width; ++f) {
          Copy<T>(o.doutput, o.dinputs[0].Every(f, op.width, op.tokens));
        }
      });
}

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const UpperTriangleOp& op, CpuKernelContext*) {
  return KernelOf<T>(
      {},
      [op](const ForwardOperands<T>& o) {
        ForEachRun(op, o.inputs[0], o.output,
                   [](Panels<const T> x, Panels<T> y) { Copy<T>(x, y); });
      },
      [op](const BackwardOperands<T>& o) {
        Fill<T>(T{0}, o.dinputs[0]);
        ForEachRun(op, o.dinputs[0], o.doutput,
                   [](Panels<T> dx, Panels<const T> dy) { Copy<T>(dy, dx); });
      });
}

ELASTOR_INSTANTIATE_CPU_KERNEL(AddOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(BlockTransposeOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(ConcatOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(DropoutOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(FactorizationPoolOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(JointLogitOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(MeanLogitOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(MeanPoolOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(MultiplyOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(PadOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(ReluOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(SigmoidGateOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(SliceOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(SumPoolOp)
ELASTOR_INSTANTIATE_CPU_KERNEL(UpperTriangleOp)

}  // namespace elastor
