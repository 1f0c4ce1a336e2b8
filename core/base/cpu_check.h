#ifndef ELASTOR_CORE_BASE_CPU_CHECK_H_
#define ELASTOR_CORE_BASE_CPU_CHECK_H_

namespace elastor {

// A binary that links this target checks the CPU before main and before any static initialiser of
// ours (cpu_features.h), and ends with exit code 3 and one line instead of an illegal instruction.

// Prints the one line that names the missing feature and exits with code 3.
[[noreturn]] void RefuseCpu(const char* missing_feature);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CPU_CHECK_H_
