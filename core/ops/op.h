#ifndef ELASTOR_CORE_OPS_OP_H_
#define ELASTOR_CORE_OPS_OP_H_

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/log.h"

namespace elastor {

template <typename T>
class CpuKernel;
class CpuKernelContext;
namespace cuda {
template <typename A>
class DeviceKernel;
template <typename A>
class DeviceKernelContext;
}  // namespace cuda

// The shape of a value for one row of the batch: `tokens` vectors of `width` features, token after
// token. A plain vector has one token.
struct Shape {
  int64_t tokens = 1;
  int64_t width = 0;
  int64_t features() const { return tokens * width; }
  bool operator==(const Shape&) const = default;
};

inline constexpr int kMaxInputs = 3;  // most inputs of an op

// The rule that gives the gradient of one input of an op.
struct InputGradient {
  enum class Rule {
    kComputed,   // the op's backward kernel computes it
    kPassedOn,   // it is the output's gradient itself, from feature `first_feature` on
    kLikeFirst,  // it is the same as that of input 0
  };
  Rule rule = Rule::kComputed;
  int64_t first_feature = 0;
};

// An op is a struct of attributes, derived from this one. It says what holds on every device: the
// shape of its output, its cost and the rule of each input's gradient. The op's kernel on a device
// (cpu/kernel.h, cuda/kernel.h) decides how it is computed there. Every op also declares
//
//   static constexpr const char* kName;
//   Shape OutputShape(std::span<const Shape> inputs) const;  // CHECKs its inputs
//
// and, by ELASTOR_DECLARE_KERNELS, one kernel a device. ops.h lists all ops.
struct OpBase {
  // Returns the multiply-adds of matrix products per row of the forward pass.
  int64_t multiply_adds() const { return 0; }
  InputGradient gradient(int input) const {
    (void)input;
    return {};
  }
  // Returns whether a training pass must hold all rows of a leaf, because rows depend on each
  // other.
  bool needs_whole_leaf() const { return false; }
  // Returns whether its CPU kernel can deliver the parameters' gradients row by row
  // (RowGradientSink).
  bool row_gradients() const { return false; }
};

// Declares the functions that make an op's kernels, which its .cc files in cpu/ and cuda/ define
// for every T (float, double) and A (float, BFloat16).
#define ELASTOR_DECLARE_KERNELS(Op)                                                     \
  template <typename T>                                                                 \
  std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const Op& op, CpuKernelContext* context); \
  namespace cuda {                                                                      \
  template <typename A>                                                                 \
  std::unique_ptr<DeviceKernel<A>> MakeDeviceKernel(const Op& op,                       \
                                                    DeviceKernelContext<A>* context);   \
  }

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_OP_H_
