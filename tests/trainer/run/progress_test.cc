#include "trainer/run/progress.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

using testing::HasSubstr;

TEST(ProgressTest, BarAndLine) {
  Progress progress = {.step = 50,
                       .total_steps = 200,
                       .epoch = 1,
                       .epochs = 4,
                       .loss = 0.45123,
                       .samples_per_s = 1234,
                       .elapsed_seconds = 25};
  const std::string line =
      "step 50/200  epoch 2/4  loss 0.4512  1.2k samples/s  0:25 elapsed  1:15 left";
  EXPECT_EQ(ProgressLine(progress), line);
  EXPECT_EQ(ProgressBar(progress, 120), "[=======>                      ] " + line);
  EXPECT_EQ(ProgressBar(progress, static_cast<int>(line.size()) + 11), "[==>     ] " + line);
  EXPECT_EQ(ProgressBar(progress, 40), line.substr(0, 40));

  // Of a run that went on, time is told by the steps of this process.
  progress.first_step = 40;
  EXPECT_THAT(ProgressLine(progress), HasSubstr("  0:25 elapsed  6:15 left"));
}

TEST(ProgressTest, EndAndUnknownLength) {
  Progress progress = {.step = 200, .total_steps = 200, .samples_per_s = 9.6, .elapsed_seconds = 1};
  EXPECT_EQ(ProgressBar(progress, 120),
            "[==============================] step 200/200  epoch 1  loss 0.0000  10 samples/s  "
            "0:01 elapsed  0:00 left");
  progress.total_steps = 0;
  progress.samples_per_s = 1'234'567;
  progress.elapsed_seconds = 10'000;
  EXPECT_EQ(ProgressBar(progress, 120),
            "step 200  epoch 1  loss 0.0000  1.23M samples/s  2:46:40 elapsed");
}

// How often something is shown in a run of so many seconds that has 20 steps a second.
int Shown(double seconds, bool terminal) {
  ProgressClock clock(terminal);
  int shown = 0;
  for (int step = 0; step < 20 * seconds; ++step) shown += clock.Due(step / 20.0);
  return shown;
}

TEST(ProgressTest, IsShownByTime) {
  EXPECT_EQ(Shown(0.9, true), 0);
  EXPECT_NEAR(Shown(11, true), 45, 6);  // a step in five or four
  EXPECT_EQ(Shown(0.9, false), 0);
  EXPECT_NEAR(Shown(10, false), 9, 1);
  EXPECT_NEAR(Shown(600, false), 9 + 43, 3);
  EXPECT_NEAR(Shown(600 + 3600, false) - Shown(600, false), 60, 2);
}

}  // namespace
}  // namespace elastor
