#include "core/base/log.h"
#include "core/kernels/cpu/bfloat16.h"
#include "core/kernels/cpu/isa.h"

namespace elastor {

const BFloat16Kernels& KernelsOfBFloat16() {
  static const bool available = CpuHasBFloat16();
  CHECK(available);
  return v4bf16::kKernels;
}

}  // namespace elastor
