#include "core/base/numerics.h"

namespace elastor {
namespace {

// What the fingerprint calls x86-64-v3.
static_assert(__AVX2__ == 1 && __FMA__ == 1);
constexpr char kInstructions[] = "x86-64-v3";

constexpr char kCompiler[] = "gcc-" __VERSION__;

// The class of CPU kernels: sample panels of 16 lanes, the orders of core/kernels/matmul.h. Change
// it when an order of additions or a polynomial changes.
constexpr char kKernels[] = "panels16";

}  // namespace

std::string NumericsFingerprint(const std::string& device) {
  return std::string(kInstructions) + " " + kCompiler + " " + kKernels + " " + device;
}

}  // namespace elastor
