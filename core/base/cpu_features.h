#ifndef ELASTOR_CORE_BASE_CPU_FEATURES_H_
#define ELASTOR_CORE_BASE_CPU_FEATURES_H_

namespace elastor {

// What of instructions the build uses everywhere and a CPU may lack. Nothing here may use the
// standard library: an inline function shared with another file could have been compiled there for
// the newer CPU.

// The features that both the CPU and the operating system support.
struct CpuFeatures {
#ifdef __aarch64__
  bool floating_point;
  bool asimd;  // NEON
#else
  bool avx2;
  bool fma;
  bool f16c;
  bool bmi;
  bool bmi2;
  bool lzcnt;
  bool movbe;
#endif
};
CpuFeatures ReadCpuFeatures();

// Returns the name of the first feature that the build needs and `features` lacks; null if there is
// none.
const char* MissingCpuFeature(const CpuFeatures& features);

// The instructions that the build needs and the CPUs that have them.
extern const char* const kNeededCpu;

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CPU_FEATURES_H_
