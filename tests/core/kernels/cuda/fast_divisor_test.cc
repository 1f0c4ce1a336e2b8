#include "core/kernels/cuda/fast_divisor.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace elastor::cuda {
namespace {

constexpr uint32_t kLargest = (uint32_t{1} << 31) - 1;

TEST(FastDivisorTest, DividesAsTheProcessorDoes) {
  std::vector<uint32_t> divisors = {kLargest, kLargest - 1};
  for (uint32_t d = 1; d <= 1100; ++d) divisors.push_back(d);
  for (int bit = 11; bit < 31; ++bit) {
    for (const int near : {-1, 0, 1}) divisors.push_back((uint32_t{1} << bit) + near);
  }
  std::mt19937 random(1);
  for (const uint32_t d : divisors) {
    const FastDivisor divisor(d);
    ASSERT_EQ(divisor.divisor(), d);
    const auto expect = [&](uint32_t n) { ASSERT_EQ(divisor.Divide(n), n / d) << n << " / " << d; };
    // Around the multiples, where a quotient that is off shows.
    for (int i = 0; i < 1000; ++i) {
      const uint32_t multiple = random() % (kLargest / d + 1) * d;
      expect(multiple);
      expect(multiple == 0 ? 0 : multiple - 1);
      expect(random() & kLargest);
    }
    expect(0);
    expect(kLargest);
  }
}

}  // namespace
}  // namespace elastor::cuda
