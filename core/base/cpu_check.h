#ifndef ELASTOR_CORE_BASE_CPU_CHECK_H_
#define ELASTOR_CORE_BASE_CPU_CHECK_H_

namespace elastor {

// The build uses x86-64-v3 instructions everywhere. A binary that links this target checks the CPU
// before main and before any static initialiser of ours, and ends with exit code 3 and one line
// instead of an illegal instruction. Nothing here may use the standard library: an inline function
// shared with another file could have been compiled there for the newer CPU.

// The features that both the CPU and the operating system support.
struct CpuFeatures {
  bool avx2;
  bool fma;
  bool f16c;
  bool bmi;
  bool bmi2;
  bool lzcnt;
  bool movbe;
};
CpuFeatures ReadCpuFeatures();

// Returns the name of the first feature that the build needs and `features` lacks; null if there is
// none.
const char* MissingCpuFeature(const CpuFeatures& features);

// Prints the one line that names the missing feature and exits with code 3.
[[noreturn]] void RefuseCpu(const char* missing_feature);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CPU_CHECK_H_
