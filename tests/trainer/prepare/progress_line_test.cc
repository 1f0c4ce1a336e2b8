#include "trainer/prepare/progress_line.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

TEST(ProgressLineTest, RatesAndTimeLeft) {
  const PrepareProgress progress = {"reading", 0.25, 2'000'000, 500'000'000};
  EXPECT_EQ(ProgressLine::Text(progress, 0, 10, false),
            "reading 25 %, 200 thousand rows/s, 50 MB/s, 0:30 left");
  EXPECT_EQ(ProgressLine::Text(progress, 0, 10, true),
            "reading [######..................] 25 %, 200 thousand rows/s, 50 MB/s, 0:30 left");
  // What an earlier run had done says nothing about the speed of this one.
  EXPECT_EQ(ProgressLine::Text(progress, 0.2, 10, false),
            "reading 25 %, 200 thousand rows/s, 50 MB/s, 2:30 left");
  EXPECT_EQ(ProgressLine::Text({"writing", 0.001, 40'000, 0}, 0, 5, false),
            "writing 0 %, 8.0 thousand rows/s, 1:23:15 left");
  EXPECT_EQ(ProgressLine::Text({"ranking values", 0, 0, 0}, 0, 0, false), "ranking values 0 %");
}

}  // namespace
}  // namespace elastor
