// Linked with a leaf tree that has a mistake in it: the law of
// tests/trainer/step/train_step_test.cc must be found broken, or that test could not fail.
#include <gtest/gtest.h>

#include "tests/trainer/step/tiny_training.h"

namespace elastor {
namespace {

TEST(MutantTest, ThreeRanksGiveOtherBitsThanOne) {
  const TinyTraining training = {.model = TinyMlp({16, 8})};
  const Outcome one = Train(training, Spread{});
  const Outcome three = Train(training, {.ranks = 3});
  EXPECT_NE(one.digest, three.digest);
  EXPECT_NE(Differences(one, three), "");
  // The mistake is one of rounding alone; the numbers are as good as before.
  constexpr double kRounding = 1e-3;
  ASSERT_EQ(one.steps.size(), three.steps.size());
  for (size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_NEAR(one.steps[i].loss, three.steps[i].loss, kRounding);
  }
}

}  // namespace
}  // namespace elastor
