#include <asm/sigcontext.h>
#include <ucontext.h>

#include <cstdint>

#include "core/cuda/emulation/page_fault.h"

namespace elastor::cuda::emulation {

bool IsWrite(void* context) {
  constexpr uint64_t kWrite = 1 << 6;  // WnR of the syndrome, which is a record among others
  const auto* record = reinterpret_cast<const _aarch64_ctx*>(
      static_cast<ucontext_t*>(context)->uc_mcontext.__reserved);
  while (record->magic != 0 && record->magic != ESR_MAGIC) {
    record =
        reinterpret_cast<const _aarch64_ctx*>(reinterpret_cast<const char*>(record) + record->size);
  }
  return record->magic == ESR_MAGIC &&
         (reinterpret_cast<const esr_context*>(record)->esr & kWrite) != 0;
}

}  // namespace elastor::cuda::emulation
