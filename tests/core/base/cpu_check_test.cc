#include "core/base/cpu_check.h"

#include <gtest/gtest.h>

#include "core/base/cpu_features.h"

namespace elastor {
namespace {

#ifdef __aarch64__
constexpr CpuFeatures kEverything = {.floating_point = true, .asimd = true};
#else
constexpr CpuFeatures kEverything = {.avx2 = true,
                                     .fma = true,
                                     .f16c = true,
                                     .bmi = true,
                                     .bmi2 = true,
                                     .lzcnt = true,
                                     .movbe = true};
#endif

TEST(CpuCheckTest, AcceptsACpuWithEverything) {
  EXPECT_EQ(MissingCpuFeature(kEverything), nullptr);
}

TEST(CpuCheckTest, AcceptsTheCpuThatRunsThisTest) {
  EXPECT_EQ(MissingCpuFeature(ReadCpuFeatures()), nullptr);
}

TEST(CpuCheckTest, NamesWhatIsMissing) {
  const auto missing_without = [](bool CpuFeatures::*feature) {
    CpuFeatures features = kEverything;
    features.*feature = false;
    return MissingCpuFeature(features);
  };
#ifdef __aarch64__
  EXPECT_STREQ(missing_without(&CpuFeatures::floating_point), "floating point");
  EXPECT_STREQ(missing_without(&CpuFeatures::asimd), "NEON");
#else
  EXPECT_STREQ(missing_without(&CpuFeatures::avx2), "AVX2");
  EXPECT_STREQ(missing_without(&CpuFeatures::fma), "FMA");
  EXPECT_STREQ(missing_without(&CpuFeatures::f16c), "F16C");
  EXPECT_STREQ(missing_without(&CpuFeatures::bmi), "BMI1");
  EXPECT_STREQ(missing_without(&CpuFeatures::bmi2), "BMI2");
  EXPECT_STREQ(missing_without(&CpuFeatures::lzcnt), "LZCNT");
  EXPECT_STREQ(missing_without(&CpuFeatures::movbe), "MOVBE");
#endif
}

TEST(CpuCheckTest, RefusesInOneLineWithExitCode3) {
  EXPECT_EXIT(RefuseCpu("AVX2"), testing::ExitedWithCode(3), "^this CPU lacks AVX2; [^\n]*\n$");
}

}  // namespace
}  // namespace elastor
