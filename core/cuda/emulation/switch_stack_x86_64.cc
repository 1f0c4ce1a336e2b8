#include "core/cuda/emulation/switch_stack.h"

asm(R"(
  .text
  .globl ElastorSwitchStack
  .type ElastorSwitchStack, @function
ElastorSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size ElastorSwitchStack, . - ElastorSwitchStack
)");

namespace elastor::cuda::emulation {

void* NewStack(void* end, void (*enter)()) {
  constexpr int kSavedRegisters = 6;
  void** top = static_cast<void**>(end);
  *--top = nullptr;  // where `enter` would return to
  *--top = reinterpret_cast<void*>(enter);
  return top - kSavedRegisters;
}

}  // namespace elastor::cuda::emulation
