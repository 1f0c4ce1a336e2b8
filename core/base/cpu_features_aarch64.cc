#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "core/base/cpu_features.h"

namespace elastor {

const char* const kNeededCpu = "aarch64 with NEON (Armv8-A or newer)";

CpuFeatures ReadCpuFeatures() {
  const unsigned long bits = getauxval(AT_HWCAP);
  return {.floating_point = (bits & HWCAP_FP) != 0, .asimd = (bits & HWCAP_ASIMD) != 0};
}

const char* MissingCpuFeature(const CpuFeatures& features) {
  if (!features.floating_point) return "floating point";
  if (!features.asimd) return "NEON";
  return nullptr;
}

}  // namespace elastor
