#include "core/base/numerics.h"

#include <string_view>

namespace elastor {
namespace {

// The instructions that the build needs.
#ifdef __aarch64__
constexpr char kInstructions[] = "aarch64";
#else
static_assert(__AVX2__ == 1 && __FMA__ == 1);
constexpr char kInstructions[] = "x86-64-v3";
#endif

// Earlier fingerprints named the compiler of the build. Bits do not depend on it
// (docs/inside/design.md), nor on the machine, and hashes of runs keep what the first runs have.
constexpr char kBuildInHashes[] = "x86-64-v3 gcc-12.2.0";
constexpr std::string_view kCompilerMark = " gcc-";

// The class of CPU kernels: sample panels of 16 lanes, the orders of core/kernels/matmul.h. Change
// it when an order of additions or a polynomial changes.
constexpr char kKernels[] = "panels16";

}  // namespace

std::string NumericsFingerprint(const std::string& device) {
  return std::string(kInstructions) + " " + kKernels + " " + device;
}

std::string NumericsInHashes(const std::string& device) {
  return std::string(kBuildInHashes) + " " + kKernels + " " + device;
}

std::string WithoutMachine(const std::string& fingerprint) {
  for (const std::string_view machine : {"x86-64-v3 ", "aarch64 "}) {
    if (fingerprint.starts_with(machine)) return fingerprint.substr(machine.size());
  }
  return fingerprint;
}

std::string WithoutCompiler(const std::string& fingerprint) {
  const size_t begin = fingerprint.find(kCompilerMark);
  // The name of the compiler may have blanks.
  const size_t end = fingerprint.find(" panels");
  if (begin == fingerprint.npos || end == fingerprint.npos || end < begin) return fingerprint;
  return fingerprint.substr(0, begin) + fingerprint.substr(end);
}

}  // namespace elastor
