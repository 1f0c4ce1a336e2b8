#ifndef ELASTOR_CORE_OPS_KERNEL_FUNCTION_H_
#define ELASTOR_CORE_OPS_KERNEL_FUNCTION_H_

#include <type_traits>

namespace elastor {

// A kernel of an op without parameters and state is a pair of functions (FunctionKernel in
// cpu/kernel.h and cuda/kernel.h).

// Stands for the backward function of an op whose gradients all follow from its rules
// (OpBase::gradient), and of an op without inputs.
struct NothingToCompute {
  template <typename Operands>
  void operator()(const Operands&) const {}
};

// Calls a kernel's function with what it takes: (operands), (pass, operands) or (pass, memory,
// operands).
template <typename Function, typename Operands, typename Pass, typename... Memory>
void CallKernelFunction(const Function& function, const Operands& operands, const Pass& pass,
                        const Memory&... memory) {
  if constexpr (std::is_invocable_v<const Function&, const Operands&>) {
    function(operands);
  } else if constexpr (std::is_invocable_v<const Function&, const Pass&, const Operands&>) {
    function(pass, operands);
  } else {
    function(pass, memory..., operands);
  }
}

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_KERNEL_FUNCTION_H_
