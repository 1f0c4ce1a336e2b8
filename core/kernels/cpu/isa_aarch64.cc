#include "core/kernels/cpu/isa.h"
#include "core/kernels/cpu/kernel_table.h"

namespace elastor {

std::span<const Isa> IsasOfMachine() {
  static constexpr Isa kOfMachine[] = {Isa::kNeon};
  return kOfMachine;
}

bool CpuHas(Isa isa) { return isa == Isa::kNeon; }  // core/base/cpu_check.h

bool CpuHasBFloat16() { return false; }

template <>
const KernelTable<float>& Kernels<float>() {
  return neon::kFloatKernels;
}
template <>
const KernelTable<double>& Kernels<double>() {
  return neon::kDoubleKernels;
}

}  // namespace elastor
