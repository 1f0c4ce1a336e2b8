#include "core/base/log.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace elastor {
namespace {

enum class Colour { kRed = 3 };

int calls = 0;
int Count() { return ++calls; }

TEST(LogDeathTest, AFailedCheckSaysTheConditionAndTheDetails) {
  const bool holds = false;
  EXPECT_DEATH(CHECK(holds) << "row " << int64_t{-7} << ", " << 0.5 << std::string("!"),
               "Check failed: holds row -7, 0.5!");
}

TEST(LogDeathTest, AFailedComparisonSaysBothValues) {
  EXPECT_DEATH(CHECK_EQ(Colour::kRed, Colour{4}) << "colours",
               "Check failed: .* == .* \\(3 vs. 4\\) colours");
  EXPECT_DEATH(CHECK_NE(uint8_t{9}, 9), "\\(9 vs. 9\\)");
  EXPECT_DEATH(CHECK_LT(uint64_t{18446744073709551615u}, 7u), "18446744073709551615 vs. 7");
  EXPECT_DEATH(CHECK_LE(2.5, 1.25f), "2.5 vs. 1.25");
  EXPECT_DEATH(CHECK_GT(std::string("a"), "b"), "a vs. b");
  EXPECT_DEATH(CHECK_GE(true, 2), "1 vs. 2");
  EXPECT_DEATH(CHECK_NE(static_cast<int*>(nullptr), nullptr), "vs.");
  EXPECT_DEATH(LOG(FATAL) << "no such kind", "no such kind");
}

TEST(LogTest, WhatHoldsCostsOneEvaluationAndPrintsNothing) {
  testing::internal::CaptureStderr();
  calls = 0;
  CHECK_EQ(Count(), 1) << Count();
  CHECK(Count() == 2) << Count();
  if (calls == 2)
    CHECK_LT(calls, 3);
  else
    CHECK(false);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  LOG(WARNING) << "few rows: " << 3;
  EXPECT_NE(testing::internal::GetCapturedStderr().find("few rows: 3"), std::string::npos);
}

}  // namespace
}  // namespace elastor
