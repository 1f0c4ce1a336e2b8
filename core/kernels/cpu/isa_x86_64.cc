#include "core/kernels/cpu/isa.h"
#include "core/kernels/cpu/kernel_table.h"

namespace elastor {

std::span<const Isa> IsasOfMachine() {
  static constexpr Isa kOfMachine[] = {Isa::kV3, Isa::kV4};
  return kOfMachine;
}

bool CpuHas(Isa isa) {
  if (isa != Isa::kV4) return isa == Isa::kV3;  // core/base/cpu_check.h
  // These include the check that the operating system saves the registers.
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

bool CpuHasBFloat16() { return ActiveIsa() == Isa::kV4 && __builtin_cpu_supports("avx512bf16"); }

template <>
const KernelTable<float>& Kernels<float>() {
  static const auto& table = ActiveIsa() == Isa::kV4 ? v4::kFloatKernels : v3::kFloatKernels;
  return table;
}
template <>
const KernelTable<double>& Kernels<double>() {
  static const auto& table = ActiveIsa() == Isa::kV4 ? v4::kDoubleKernels : v3::kDoubleKernels;
  return table;
}

}  // namespace elastor
