#include <ucontext.h>

#include "core/cuda/emulation/page_fault.h"

namespace elastor::cuda::emulation {

bool IsWrite(void* context) {
  constexpr greg_t kWrite = 2;  // of the page fault's error code
  return (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
}

}  // namespace elastor::cuda::emulation
