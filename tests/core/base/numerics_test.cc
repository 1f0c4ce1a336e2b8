#include "core/base/numerics.h"

#include <gtest/gtest.h>

#include <string>

#include "core/tensor/panels.h"

namespace elastor {
namespace {

TEST(NumericsTest, FingerprintNamesInstructionsKernelsAndDevice) {
  const std::string kernels = "panels" + std::to_string(kPanelRows);
#ifdef __aarch64__
  const std::string machine = "aarch64 ";
#else
  const std::string machine = "x86-64-v3 ";
#endif
  EXPECT_EQ(NumericsFingerprint("cpu"), machine + kernels + " cpu");
  // As in the names of runs that are there.
  EXPECT_EQ(NumericsInHashes("cpu"), "x86-64-v3 gcc-12.2.0 " + kernels + " cpu");
}

TEST(NumericsTest, StoredFingerprintsLoseTheirCompiler) {
  for (const char* compiler : {"gcc-12.2.0", "gcc-Debian Clang 14.0.6", "gcc-14.2.0"}) {
    EXPECT_EQ(WithoutCompiler(std::string("x86-64-v3 ") + compiler + " panels16 cpu vdpbf16ps"),
              "x86-64-v3 panels16 cpu vdpbf16ps");
  }
  for (const char* other : {"x86-64-v3 panels16 cpu", "numerics", "", "x86-64-v4 gcc-12.2.0"}) {
    EXPECT_EQ(WithoutCompiler(other), other);
  }
}

TEST(NumericsTest, MachinesHaveOneArithmetic) {
  EXPECT_EQ(WithoutMachine("x86-64-v3 panels16 cpu"), "panels16 cpu");
  EXPECT_EQ(WithoutMachine("aarch64 panels16 cpu"), "panels16 cpu");
  EXPECT_EQ(WithoutMachine("panels16 cpu"), "panels16 cpu");
}

// The bits depend on the compiler not fusing a product and a sum by itself (-ffp-contract=off).
TEST(NumericsTest, ProductsAndSumsAreRoundedSeparately) {
  volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30, c = -1;
  const double x = a, y = b, z = c;
  EXPECT_EQ(x * y + z, 0);  // fused, it would be -2^-60
}

}  // namespace
}  // namespace elastor
