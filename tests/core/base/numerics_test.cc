#include "core/base/numerics.h"

#include <gtest/gtest.h>

#include <string>

#include "core/tensor/panels.h"

namespace elastor {
namespace {

TEST(NumericsTest, FingerprintNamesInstructionsCompilerAndKernels) {
  const std::string fingerprint = NumericsFingerprint("cpu");
  EXPECT_EQ(fingerprint.find("x86-64-v3 gcc-"), 0u) << fingerprint;
  EXPECT_NE(fingerprint.find(" panels" + std::to_string(kPanelRows) + " "), std::string::npos)
      << fingerprint;
  EXPECT_TRUE(fingerprint.ends_with(" cpu")) << fingerprint;
}

// The bits depend on the compiler not fusing a product and a sum by itself (-ffp-contract=off).
TEST(NumericsTest, ProductsAndSumsAreRoundedSeparately) {
  volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30, c = -1;
  const double x = a, y = b, z = c;
  EXPECT_EQ(x * y + z, 0);  // fused, it would be -2^-60
}

}  // namespace
}  // namespace elastor
