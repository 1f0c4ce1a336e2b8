#ifndef ELASTOR_CORE_OPS_CUDA_KERNEL_H_
#define ELASTOR_CORE_OPS_CUDA_KERNEL_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/cuda/bfloat16.h"
#include "core/cuda/matmul.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/ops/cuda/device_pass.h"
#include "core/ops/cuda/leaf_gradients.h"
#include "core/ops/kernel_function.h"
#include "core/ops/kernel_traits.h"
#include "core/ops/op.h"
#include "core/parameters/parameter_layout.h"

namespace elastor::cuda {

struct KernelPass : DevicePass {
  LeafGradients* gradients = nullptr;  // Backward only
};

// The stream, the products and the parameters that the kernels of one executor share. Only the
// parameters' values change.
template <typename A>
class DeviceEnvironment {
 public:
  // layout and stream outlive the object.
  DeviceEnvironment(const ParameterLayout* layout, const DeviceModelOptions& options,
                    Stream* stream)
      : layout_(layout),
        options_(options),
        stream_(stream),
        matmul_(stream, options.precision,
                options.reproducible ? SumOrder::kFixed : SumOrder::kAny),
        rounded_(stream, kRounded ? layout->flat_size() : 0) {}

  const ParameterLayout& layout() const { return *layout_; }
  const DeviceModelOptions& options() const { return options_; }
  Stream& stream() const { return *stream_; }
  Matmul& matmul() { return matmul_; }

  void SetWeights(const float* weights);
  const float* values(int parameter) const { return weights_ + (*layout_)[parameter].offset; }
  // Returns the parameter's values as products read them, rounded to A.
  const A* factors(int parameter) const {
    const int64_t offset = (*layout_)[parameter].offset;
    if constexpr (kRounded) {
      return rounded_.data() + offset;
    } else {
      return weights_ + offset;
    }
  }

 private:
  static constexpr bool kRounded = !std::is_same_v<A, float>;

  const ParameterLayout* layout_;
  DeviceModelOptions options_;
  Stream* stream_;
  Matmul matmul_;
  const float* weights_ = nullptr;
  Buffer<BFloat16> rounded_;  // the flat parameter array, rounded to BFloat16
};

// An amount of device memory in bytes: a part for each row, a part for each leaf, and a constant
// part.
struct DeviceBytes {
  int64_t row = 0;
  int64_t leaf = 0;
  int64_t once = 0;
};

// How long a kernel's memory keeps its contents: during a call of Forward, during a call of
// Backward, or from Forward to Backward.
enum class DeviceLife { kForward, kBackward, kKept };

// A kernel's view of its node and of the executor. While it is constructed, the kernel asks here
// for memory beside its operands.
template <typename A>
class DeviceKernelContext {
 public:
  // One of the node's parameters. Where several nodes use it, their gradients are added up in the
  // order of the backward pass, in which this use may be the first and the last.
  struct Parameter {
    int number = -1;  // the parameter's number in the layout
    bool first_use = true;
    bool last_use = true;
    int scratch = -1;      // slot for the gradient of a use that is not the first
    float* sum = nullptr;  // the sum of the gradients so far, while Backward runs
  };
  // environment outlives the object.
  DeviceKernelContext(DeviceEnvironment<A>* environment, std::vector<Shape> inputs, Shape output,
                      std::vector<Parameter> parameters);

  Stream& stream() const { return environment_->stream(); }
  Matmul& matmul() const { return environment_->matmul(); }
  const DeviceModelOptions& options() const { return environment_->options(); }

  int inputs() const { return static_cast<int>(inputs_.size()); }
  const Shape& input(int index) const { return inputs_[index]; }
  const Shape& output() const { return output_; }
  // Returns whether an input (or the first one) has another number of tokens than the `tokens` that
  // the kernel reads. Then each of its rows must lie together in memory.
  bool regroups_inputs(int64_t tokens) const;
  bool regroups_first_input(int64_t tokens) const { return inputs_[0].tokens != tokens; }

  // The node's parameters, by their place in the op's order.
  int64_t size(int index) const { return environment_->layout()[parameters_[index].number].size; }
  const float* values(int index) const { return environment_->values(parameters_[index].number); }
  const A* factors(int index) const { return environment_->factors(parameters_[index].number); }

  // Returns where the leaves' gradients of a parameter of `maps` equal parts go, one leaf after
  // another. Work on the stream writes them before Close. Open each parameter exactly once per
  // backward pass.
  LeafGradients::Target Open(const KernelPass& pass, int index, int64_t maps);
  void Close(const KernelPass& pass, int index);

  // Reserves memory, 256-byte aligned. Returns the number of its slot.
  int Reserve(DeviceLife life, const DeviceBytes& bytes) {
    slots_.push_back({life, bytes});
    return static_cast<int>(slots_.size()) - 1;
  }
  template <typename T>
  T* Data(int slot) const {
    return reinterpret_cast<T*>(slots_[slot].data);
  }
  // Activations [rows, tokens, width].
  struct View {
    int slot = -1;
    Shape shape;
    TokenLayout layout = TokenLayout::kRowMajor;
    bool empty() const { return slot < 0; }
  };
  View Reserve(DeviceLife life, TokenLayout layout, const Shape& shape) {
    return {Reserve(life, {.row = shape.features() * static_cast<int64_t>(sizeof(A))}), shape,
            layout};
  }
  Activations<A> At(const DevicePass& pass, const View& view) const {
    A* const data = Data<A>(view.slot);
    const auto [tokens, width] = view.shape;
    return view.layout == TokenLayout::kRowMajor
               ? Activations<A>::RowMajor(data, pass.shape.rows(), tokens, width)
               : Activations<A>::TokenMajor(data, pass.shape.rows(), tokens, width);
  }
  // Reserves scratch memory of Backward for sums over the rows of `columns` columns
  // (ColumnSumScratch); a device row is `rows_per_device_row` rows.
  int ReserveColumnSums(int64_t columns, int64_t rows_per_device_row = 1);

  // The memory of one slot, which the executor provides.
  struct Slot {
    DeviceLife life;
    DeviceBytes bytes;
    char* data = nullptr;
  };
  std::vector<Slot>& slots() { return slots_; }

 private:
  DeviceEnvironment<A>* environment_;
  std::vector<Shape> inputs_;
  Shape output_;
  std::vector<Parameter> parameters_;
  std::vector<Slot> slots_;
};

template <typename A>
struct ForwardOperands {
  Activations<const A> inputs[kMaxInputs];
  Activations<A> output;
  // The output of the node that computes the logits, in place of `output`: logits are not rounded
  // to A.
  Activations<float> logits;
};

// dinputs[i] = the gradient of input i (+ addends[i] if that view is not empty). The kernel does
// not compute a gradient whose view is empty. inputs and output hold values only as far as the
// kernel's traits say that it reads them.
template <typename A>
struct BackwardOperands {
  Activations<const A> inputs[kMaxInputs];
  Activations<const A> output;
  Activations<const A> doutput;
  Activations<A> dinputs[kMaxInputs];
  Activations<const A> addends[kMaxInputs];
};

// An op on the device, over all leaves at once. Operands have the shapes of their values and the
// layouts that the kernel's traits allow. Calls enqueue work on the context's stream.
template <typename A>
class DeviceKernel {
 public:
  DeviceKernel() = default;
  virtual ~DeviceKernel() = default;
  DeviceKernel(const DeviceKernel&) = delete;
  DeviceKernel& operator=(const DeviceKernel&) = delete;

  virtual KernelTraits traits() const = 0;
  // Writes the output completely.
  virtual void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) = 0;
  // Called after Forward with the same pass. Delivers the parameters' gradients and writes dinputs.
  // Where padding's doutput is 0, so are its dinputs.
  virtual void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) = 0;
};

// Delivers the gradient of a bias [maps, features]: sums of dy, [rows, maps, features], whose rows
// are device rows or a multiple of them. scratch: a slot of ReserveColumnSums.
template <typename A>
void DeliverBias(DeviceKernelContext<A>* context, const KernelPass& pass, int index,
                 Activations<const A> dy, int scratch);

// Instantiates MakeDeviceKernel for `Op`.
#define ELASTOR_INSTANTIATE_DEVICE_KERNEL(Op)                                                  \
  template std::unique_ptr<DeviceKernel<float>> MakeDeviceKernel(const Op&,                    \
                                                                 DeviceKernelContext<float>*); \
  template std::unique_ptr<DeviceKernel<BFloat16>> MakeDeviceKernel(                           \
      const Op&, DeviceKernelContext<BFloat16>*);

// Defines MakeDeviceKernel for `Op` as Kernel<A>(op, context).
#define ELASTOR_DEFINE_DEVICE_KERNEL(Op, Kernel)                                       \
  template <typename A>                                                                \
  std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const Op& op,                      \
                                                    DeviceKernelContext<A>* context) { \
    return std::make_unique<Kernel<A>>(op, context);                                   \
  }                                                                                    \
  ELASTOR_INSTANTIATE_DEVICE_KERNEL(Op)

// A kernel of two functions. Each takes (operands) or (pass, operands).
template <typename A, typename ForwardFunction, typename BackwardFunction>
class FunctionKernel final : public DeviceKernel<A> {
 public:
  FunctionKernel(const KernelTraits& traits, const ForwardFunction& forward,
                 const BackwardFunction& backward)
      : traits_(traits), forward_(forward), backward_(backward) {}
  KernelTraits traits() const override { return traits_; }
  void Forward(const DevicePass& pass, const ForwardOperands<A>& operands) override {
    CallKernelFunction(forward_, operands, pass);
  }
  void Backward(const KernelPass& pass, const BackwardOperands<A>& operands) override {
    CallKernelFunction(backward_, operands, pass);
  }

 private:
  const KernelTraits traits_;
  const ForwardFunction forward_;
  const BackwardFunction backward_;
};

// Makes the kernel of an op without parameters and state from its two functions.
template <typename A, typename ForwardFunction, typename BackwardFunction>
std::unique_ptr<DeviceKernel<A>> KernelOf(const KernelTraits& traits,
                                          const ForwardFunction& forward,
                                          const BackwardFunction& backward) {
  return std::make_unique<FunctionKernel<A, ForwardFunction, BackwardFunction>>(traits, forward,
                                                                                backward);
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_OPS_CUDA_KERNEL_H_
