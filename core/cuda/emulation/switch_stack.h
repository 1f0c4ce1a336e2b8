#ifndef ELASTOR_CORE_CUDA_EMULATION_SWITCH_STACK_H_
#define ELASTOR_CORE_CUDA_EMULATION_SWITCH_STACK_H_

// Saves the registers that a call must keep on the present stack, and its top in *from; goes on
// with the stack of `top`, where an earlier call returns. Unlike Boost.Context it leaves the
// floating point's modes alone, which all threads share, and returns by `ret`, so that the CPU
// predicts where.
extern "C" void ElastorSwitchStack(void** from, void* top);

namespace elastor::cuda::emulation {

// Returns the top of a new stack below `end`, a multiple of 16. The stack looks as if
// ElastorSwitchStack had been called on it just before `enter`, which never returns.
void* NewStack(void* end, void (*enter)());

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_SWITCH_STACK_H_
