#include "core/kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace elastor {
namespace {

// What every machine's build has first.
#ifdef __aarch64__
constexpr Isa kFirst = Isa::kNeon;
constexpr char kNames[] = "neon";
#else
constexpr Isa kFirst = Isa::kV3;
constexpr char kNames[] = "v3 or v4";
#endif

TEST(IsaTest, TakesTheBestThatTheCpuHas) {
  const Isa best = CpuHas(Isa::kV4) ? Isa::kV4 : kFirst;
  EXPECT_EQ(ChooseIsa(nullptr).value(), best);
  EXPECT_EQ(ChooseIsa("").value(), best);
}

TEST(IsaTest, CanBeForced) {
  EXPECT_EQ(ChooseIsa(IsaName(kFirst)).value(), kFirst);
  if (kFirst != Isa::kV3) return;
  if (CpuHas(Isa::kV4)) {
    EXPECT_EQ(ChooseIsa("v4").value(), Isa::kV4);
  } else {
    EXPECT_EQ(ChooseIsa("v4").status().message(),
              "ELASTOR_ISA=v4: this CPU lacks AVX-512; expected v3");
  }
}

TEST(IsaTest, RefusesOtherNames) {
  for (const std::string other : {"avx2", kFirst == Isa::kNeon ? "v3" : "neon"}) {
    EXPECT_EQ(ChooseIsa(other.c_str()).status().message(),
              "ELASTOR_ISA=" + other + ": expected " + kNames);
  }
}

TEST(IsaTest, TheEnvironmentDecides) {
  const char* forced = std::getenv("ELASTOR_ISA");
  ASSERT_NE(forced, nullptr);  // isa_main
  EXPECT_STREQ(IsaName(ActiveIsa()), forced);
}

}  // namespace
}  // namespace elastor
