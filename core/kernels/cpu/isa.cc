#include "core/kernels/cpu/isa.h"

#include <cstdlib>
#include <string>

#include "core/base/log.h"
#include "core/kernels/cpu/kernel_table.h"

namespace elastor {

const char* IsaName(Isa isa) { return isa == Isa::kV4 ? "v4" : "v3"; }

bool CpuHas(Isa isa) {
  if (isa == Isa::kV3) return true;  // core/base/cpu_check.h
  // These include the check that the operating system saves the registers.
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

StatusOr<Isa> ChooseIsa(const char* forced) {
  const std::string name = forced == nullptr ? "" : forced;
  if (name.empty()) return CpuHas(Isa::kV4) ? Isa::kV4 : Isa::kV3;
  for (const Isa isa : {Isa::kV3, Isa::kV4}) {
    if (name != IsaName(isa)) continue;
    if (CpuHas(isa)) return isa;
    return UserError("ELASTOR_ISA=" + name + ": this CPU lacks AVX-512; expected v3");
  }
  return UserError("ELASTOR_ISA=" + name + ": expected v3 or v4");
}

Isa ActiveIsa() {
  static const Isa isa = [] {
    const StatusOr<Isa> chosen = ChooseIsa(std::getenv("ELASTOR_ISA"));
    CHECK(chosen.ok()) << chosen.status().message();
    return chosen.value();
  }();
  return isa;
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
