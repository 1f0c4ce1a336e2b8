#ifndef ELASTOR_CORE_OPS_CPU_KERNEL_H_
#define ELASTOR_CORE_OPS_CPU_KERNEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/precision.h"
#include "core/base/thread_pool.h"
#include "core/ops/kernel_function.h"
#include "core/ops/kernel_traits.h"
#include "core/ops/op.h"
#include "core/parameters/gradient_sink.h"
#include "core/parameters/parameter_layout.h"
#include "core/tensor/panels.h"
#include "core/tensor/pass_leaves.h"
#include "core/tensor/workspace.h"

namespace elastor {

// One pass over rows of one leaf, or over several leaves. `workspace` belongs to the calling thread
// and carries the saved activations from Forward to Backward.
template <typename T>
struct Pass {
  Workspace<T>* workspace = nullptr;
  GradientSink<T>* sink = nullptr;  // Backward only
  // Where not null, ops with row gradients (OpBase::row_gradients) deliver theirs here, not to
  // sink.
  RowGradientSink<T>* row_sink = nullptr;
  PassLeaves leaves;
  bool training = false;           // false: no dropout, nothing saved for Backward
  const float* numeric = nullptr;  // [rows][numeric fields] without padding, NaN = missing
  // [rows][encoded sequences] without padding: a row's positions of each; null without sequences.
  const int32_t* lengths = nullptr;
  uint64_t seed = 0;
  uint32_t step = 0;
  int64_t first_row = 0;  // epoch index of row 0
  double leaf_share = 1;  // the leaf's share of the batch's rows, in a pass over one whole leaf

  ThreadPool* pool = nullptr;  // shares the work of this pass; null: the calling thread alone
  // Returns when the parameters of all buckets up to this one have come and are prepared; null: all
  // have. Forward calls it before each node.
  const std::function<void(int bucket)>* await = nullptr;

  int64_t rows() const { return leaves.rows(); }  // number of rows of the pass's views

  // Calls work(begin, end) for parts of [0, total), multiples of kPanelRows long but for the last,
  // one on each thread of the pass. Each element of a result is computed by one thread alone, so no
  // bit depends on the parts.
  template <typename Work>
  void Share(int64_t total, const Work& work) const {
    if (pool == nullptr) return work(0, total);
    pool->ParallelFor(total, kPanelRows, [&](int, int64_t begin, int64_t end) {
      if (begin < end) work(begin, end);
    });
  }
};

// Where a kernel, while it is constructed, asks for its parameters and for memory beside its
// operands.
class CpuKernelContext {
 public:
  CpuKernelContext(const ParameterLayout* layout, const std::vector<int>* parameters,
                   std::vector<Shape> inputs, Precision precision)
      : layout_(layout),
        parameters_(parameters),
        inputs_(std::move(inputs)),
        precision_(precision) {}

  int inputs() const { return static_cast<int>(inputs_.size()); }
  int64_t input_features(int input) const { return inputs_[input].features(); }

  // Returns the precision of the kernel's matrix products.
  Precision precision() const { return precision_; }

  // The node's parameters, by their place in the op's order.
  int parameter(int index) const { return (*parameters_)[index]; }
  int64_t offset(int index) const { return info(index).offset; }
  const ParameterInfo& info(int index) const { return (*layout_)[parameter(index)]; }

  // Reserves activations [rows, features] that last from the kernel's forward to its backward pass.
  // Returns the slot for KernelMemory::Saved.
  int Save(int64_t features) {
    saved_.push_back(features);
    return static_cast<int>(saved_.size()) - 1;
  }
  // Reserves a number of elements independent of the rows, which last as long. Returns the slot for
  // KernelMemory::SavedFlat.
  int SaveFlat(int64_t elements) {
    flat_.push_back(elements);
    return static_cast<int>(flat_.size()) - 1;
  }
  // Reserves at least so many elements of KernelMemory::scratch, which are valid during one call.
  void Scratch(int64_t elements) { scratch_ = std::max(scratch_, elements); }

  const std::vector<int64_t>& saved() const { return saved_; }
  const std::vector<int64_t>& flat() const { return flat_; }
  int64_t scratch() const { return scratch_; }

 private:
  const ParameterLayout* layout_;
  const std::vector<int>* parameters_;
  std::vector<Shape> inputs_;
  Precision precision_;
  std::vector<int64_t> saved_;
  std::vector<int64_t> flat_;
  int64_t scratch_ = 0;
};

// The memory a kernel asked for, in one pass.
template <typename T>
class KernelMemory {
 public:
  KernelMemory(const Workspace<T>& workspace, int64_t rows, int first_saved, int first_flat)
      : workspace_(workspace), rows_(rows), first_saved_(first_saved), first_flat_(first_flat) {}
  Panels<T> Saved(int slot) const { return workspace_.Activations(first_saved_ + slot, rows_); }
  T* SavedFlat(int slot) const { return workspace_.Flat(first_flat_ + slot); }
  T* scratch() const { return workspace_.scratch(); }

 private:
  const Workspace<T>& workspace_;
  int64_t rows_;
  int first_saved_;
  int first_flat_;
};

template <typename T>
struct ForwardOperands {
  Panels<const T> inputs[kMaxInputs];
  Panels<T> output;
};

// dinputs[i] = the gradient of input i (+ addends[i] if that view is not empty). The kernel does
// not compute a gradient whose view is empty. inputs and output hold values only as far as the
// kernel's traits say that it reads them.
template <typename T>
struct BackwardOperands {
  Panels<const T> inputs[kMaxInputs];
  Panels<const T> output;
  Panels<const T> doutput;
  Panels<T> dinputs[kMaxInputs];
  Panels<const T> addends[kMaxInputs];
};

// An op on the CPU. Constant after construction but for Prepare; several threads may run passes at
// once, each with memory of its own.
template <typename T>
class CpuKernel {
 public:
  CpuKernel() = default;
  virtual ~CpuKernel() = default;
  CpuKernel(const CpuKernel&) = delete;
  CpuKernel& operator=(const CpuKernel&) = delete;

  virtual KernelTraits traits() const = 0;
  // Takes new parameter values: the flat array of the layout, which stays in place until the next
  // call. Then every part of Repack follows, on any threads.
  virtual void Prepare(const T* parameters) { (void)parameters; }
  // Repacks part `part` of `parts` of the weights.
  virtual void Repack(const T* parameters, int part, int parts) {
    (void)parameters, (void)part, (void)parts;
  }
  // Writes the output completely, padded rows too.
  virtual void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
                       const ForwardOperands<T>& operands) const = 0;
  // Called after Forward with the same pass. Delivers each parameter's gradient, summed over the
  // pass's leaves, once to pass.sink, and writes dinputs. Where padded rows of doutput are 0, so
  // are those of dinputs.
  virtual void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                        const BackwardOperands<T>& operands) const = 0;
};

// Instantiates MakeCpuKernel for `Op`.
#define ELASTOR_INSTANTIATE_CPU_KERNEL(Op)                                                \
  template std::unique_ptr<CpuKernel<float>> MakeCpuKernel(const Op&, CpuKernelContext*); \
  template std::unique_ptr<CpuKernel<double>> MakeCpuKernel(const Op&, CpuKernelContext*);

// Defines MakeCpuKernel for `Op` as Kernel<T>(op, context).
#define ELASTOR_DEFINE_CPU_KERNEL(Op, Kernel)                                            \
  template <typename T>                                                                  \
  std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const Op& op, CpuKernelContext* context) { \
    return std::make_unique<Kernel<T>>(op, context);                                     \
  }                                                                                      \
  ELASTOR_INSTANTIATE_CPU_KERNEL(Op)

// A kernel of two functions. Each takes (operands), (pass, operands) or (pass, memory, operands).
template <typename T, typename ForwardFunction, typename BackwardFunction>
class FunctionKernel final : public CpuKernel<T> {
 public:
  FunctionKernel(const KernelTraits& traits, const ForwardFunction& forward,
                 const BackwardFunction& backward)
      : traits_(traits), forward_(forward), backward_(backward) {}
  KernelTraits traits() const override { return traits_; }
  void Forward(const Pass<T>& pass, const KernelMemory<T>& memory,
               const ForwardOperands<T>& operands) const override {
    CallKernelFunction(forward_, operands, pass, memory);
  }
  void Backward(const Pass<T>& pass, const KernelMemory<T>& memory,
                const BackwardOperands<T>& operands) const override {
    CallKernelFunction(backward_, operands, pass, memory);
  }

 private:
  const KernelTraits traits_;
  const ForwardFunction forward_;
  const BackwardFunction backward_;
};

// Makes the kernel of an op without parameters and state from its two functions.
template <typename T, typename ForwardFunction, typename BackwardFunction>
std::unique_ptr<CpuKernel<T>> KernelOf(const KernelTraits& traits, const ForwardFunction& forward,
                                       const BackwardFunction& backward) {
  return std::make_unique<FunctionKernel<T, ForwardFunction, BackwardFunction>>(traits, forward,
                                                                                backward);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_CPU_KERNEL_H_
