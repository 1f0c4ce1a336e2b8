#ifndef ELASTOR_CORE_BASE_NUMERICS_H_
#define ELASTOR_CORE_BASE_NUMERICS_H_

#include <string>

namespace elastor {

// Returns the numerics fingerprint: one line that names everything the bits of a run depend on
// besides its experiment, e.g. "x86-64-v3 panels16 cpu"; device: the text from OpenCpu or
// OpenCudaDevice (trainer/run/backend.h). Runs with equal experiments and fingerprints that are
// equal but for the machine have equal bits (docs/inside/design.md). Ranks whose fingerprints
// differ otherwise refuse to work together, and a resume under such a one warns.
std::string NumericsFingerprint(const std::string& device);

// Returns the fingerprint as hashes of runs have it. It has the form of the first runs, e.g.
// "x86-64-v3 gcc-12.2.0 panels16 cpu", so that a run's name stays.
std::string NumericsInHashes(const std::string& device);

// Returns the canonical arithmetic of a fingerprint: all but its first word, the machine.
std::string WithoutMachine(const std::string& fingerprint);

// Returns a stored fingerprint in today's form: the earlier form named the compiler too.
std::string WithoutCompiler(const std::string& fingerprint);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_NUMERICS_H_
