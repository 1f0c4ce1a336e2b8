#include "core/base/student_t.h"

#include <gtest/gtest.h>

#include <cmath>

namespace elastor {
namespace {

// Student's density, integrated from 0 by Simpson's rule.
double ShareBelow(double t, int64_t freedom) {
  const double n = static_cast<double>(freedom);
  const double scale =
      std::exp(std::lgamma((n + 1) / 2) - std::lgamma(n / 2)) / std::sqrt(n * 3.14159265358979324);
  constexpr int kSteps = 20000;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double x = t * i / kSteps;
    const double weight = i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * scale * std::pow(1 + x * x / n, -(n + 1) / 2);
  }
  return 0.5 + sum * t / kSteps / 3;
}

TEST(StudentTTest, HoldsTheSharesThatItPromises) {
  for (const int64_t freedom : {1, 2, 3, 5, 9, 14, 20, 21, 22, 30, 50, 100, 1000, 1000000}) {
    EXPECT_NEAR(ShareBelow(StudentT975(freedom), freedom), 0.975, 1e-6) << freedom;
  }
}

TEST(StudentTTest, IntervalsOfMeans) {
  EXPECT_NEAR(MeanHalfWidth(2, 10), 2.262157 * 2 / std::sqrt(10), 1e-6);
  EXPECT_TRUE(std::isinf(MeanHalfWidth(2, 1)));
}

}  // namespace
}  // namespace elastor
