#include <cpuid.h>

#include "core/base/cpu_features.h"

namespace elastor {

const char* const kNeededCpu = "x86-64-v3 (AVX2 and FMA: Intel Haswell, AMD Zen or newer)";

CpuFeatures ReadCpuFeatures() {
  __builtin_cpu_init();  // constructors may run before libgcc's own
  CpuFeatures features;
  // These include the check that the operating system saves the wide registers.
  features.avx2 = __builtin_cpu_supports("avx2");
  features.fma = __builtin_cpu_supports("fma");
  features.bmi = __builtin_cpu_supports("bmi");
  features.bmi2 = __builtin_cpu_supports("bmi2");
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  features.f16c = features.avx2 && (ecx & bit_F16C) != 0;
  features.movbe = (ecx & bit_MOVBE) != 0;
  ecx = 0;
  __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx);
  features.lzcnt = (ecx & bit_LZCNT) != 0;
  return features;
}

const char* MissingCpuFeature(const CpuFeatures& features) {
  if (!features.avx2) return "AVX2";
  if (!features.fma) return "FMA";
  if (!features.f16c) return "F16C";
  if (!features.bmi) return "BMI1";
  if (!features.bmi2) return "BMI2";
  if (!features.lzcnt) return "LZCNT";
  if (!features.movbe) return "MOVBE";
  return nullptr;
}

}  // namespace elastor
