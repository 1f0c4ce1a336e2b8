#include "core/cuda/emulation/switch_stack.h"

asm(R"(
  .text
  .globl ElastorSwitchStack
  .type ElastorSwitchStack, %function
ElastorSwitchStack:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size ElastorSwitchStack, . - ElastorSwitchStack
)");

namespace elastor::cuda::emulation {

void* NewStack(void* end, void (*enter)()) {
  constexpr int kSavedRegisters = 20, kReturnAddress = 11;
  void** const top = static_cast<void**>(end) - kSavedRegisters;
  top[kReturnAddress] = reinterpret_cast<void*>(enter);
  return top;
}

}  // namespace elastor::cuda::emulation
