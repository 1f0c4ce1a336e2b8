#include "core/base/numerics.h"

#include "core/base/build_config.h"

namespace elastor {
namespace {

// What the fingerprint calls x86-64-v3.
static_assert(__AVX2__ == 1 && __FMA__ == 1);
constexpr char kInstructions[] = "x86-64-v3";

constexpr char kCompiler[] = "gcc-" __VERSION__;

// The class of CPU kernels: sample panels of 16 lanes, the orders of core/ops/matmul.h. Change it
// when an order of additions or a polynomial changes.
constexpr char kKernels[] = "panels16";

constexpr const char* kDevice = kCuda ? "cuda" : "cpu";

}  // namespace

std::string NumericsFingerprint() {
  return std::string(kInstructions) + " " + kCompiler + " " + kKernels + " " + kDevice;
}

}  // namespace elastor
