#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_H_

#include <span>

#include "core/base/status.h"

namespace elastor {

// The instruction sets that the kernels of isa/ are compiled for: on x86-64 its level v3 (AVX2 and
// FMA, which the whole build needs) and v4 (AVX-512 F, BW, CD, DQ, VL), on aarch64 NEON. They give
// the same bits.
enum class Isa { kV3, kV4, kNeon };
inline constexpr int kIsas = 3;

// The instruction sets of this build's machine, the one that the whole build needs first
// (isa_x86_64.cc, isa_aarch64.cc).
std::span<const Isa> IsasOfMachine();

// "v3", "v4" or "neon".
const char* IsaName(Isa isa);

// Returns whether this CPU and operating system support the instruction set.
bool CpuHas(Isa isa);

// Returns whether products may use bfloat16: this CPU has AVX512-BF16, and the instruction set in
// use is v4.
bool CpuHasBFloat16();

// `forced` is the value of the environment variable ELASTOR_ISA: a name of IsasOfMachine(), which
// this CPU must have. Null or empty: the best that this CPU has. Any other value is a user error.
StatusOr<Isa> ChooseIsa(const char* forced);

// Returns the instruction set in use. The first call chooses it from the environment and ends the
// program if ChooseIsa fails. Never chosen by timing.
Isa ActiveIsa();

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_H_
