#include "core/base/canonical_flush.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/base/floating_point.h"

namespace elastor {
namespace {

class CanonicalFlushTest : public testing::Test {
 protected:
  void SetUp() override { FloatingPoint::Set(FloatingPoint::kCanonical); }
  void TearDown() override { FloatingPoint::Set(FloatingPoint::kDefault); }
};

// The bits of n * 2^-173 by x86-64's rule: rounded to 24 bits, to nearest, ties to even, as if
// exponents had no end; then 0 if below 2^-126. REQUIRES: 2^46 <= n < 2^48.
uint32_t BitsByRule(uint64_t n) {
  const int shift = n < uint64_t{1} << 47 ? 23 : 24;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rounded = (n + half - 1 + (n >> shift & 1)) >> shift;
  const uint64_t value = rounded << shift;
  if (value < uint64_t{1} << 47) return 0;
  return static_cast<uint32_t>(value >> 24) - (1u << 23) + 0x00800000u;
}

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

// How many pairs of exponents each pair of mantissas has, up to 80.
int Exponents() {
  const char* const asked = std::getenv("ELASTOR_FLUSH_EXPONENTS");
  return asked == nullptr ? 1 : std::atoi(asked);
}

// Every 24-bit mantissa a by the b's whose products lie beside 2^-126, on both sides: how many
// differ from the rule, and how many lie in the window.
struct Count {
  int64_t wrong = 0;
  int64_t in_window = 0;
};
template <typename Product>
Count ProductsByTheRule(Product product) {
  constexpr uint64_t kLeast = uint64_t{1} << 47;
  const int exponents = Exponents();
  Count count;
  for (uint64_t a = 1 << 23; a < 1 << 24; ++a) {
    const uint64_t nearest = (kLeast - 1) / a;
    const uint32_t sign = static_cast<uint32_t>(a & 4) << 29;
    for (int i = 0; i < exponents; ++i) {
      // The factors' units are 2^(exponent - 126) and 2^(-47 - exponent).
      const int exponent = static_cast<int>((a + i) % 80);
      const float x = FromBits((static_cast<uint32_t>(a) & 0x7fffff) | sign |
                               static_cast<uint32_t>(127 + 23 - 126 + exponent) << 23);
      for (uint64_t b = nearest - 2; b <= nearest + 1; ++b) {
        if (b >= 1 << 24 || b < 1 << 23) continue;
        const float y = FromBits((static_cast<uint32_t>(b) & 0x7fffff) |
                                 static_cast<uint32_t>(127 + 23 + 126 - 173 - exponent) << 23);
        const uint32_t expected = BitsByRule(a * b) | sign;
        count.in_window += a * b < kLeast && (expected & 0x7fffffff) != 0;
        count.wrong += BitsOf(product(x, y)) != expected;
      }
    }
  }
  return count;
}

#ifdef __aarch64__
constexpr bool kFlushesBeforeRounding = true;
#else
constexpr bool kFlushesBeforeRounding = false;
#endif

TEST_F(CanonicalFlushTest, ProductsBesideTheLeastNormalNumber) {
  const Count count = ProductsByTheRule([](float a, float b) { return CanonicalProduct(a, b); });
  EXPECT_EQ(count.wrong, 0);
  // This test can fail: the machine's own product is wrong in the whole window.
  const Count plain = ProductsByTheRule([](float a, float b) { return a * b; });
  EXPECT_EQ(plain.in_window, Exponents() * 2'907'534);
  EXPECT_EQ(plain.wrong, kFlushesBeforeRounding ? plain.in_window : 0);
}

TEST_F(CanonicalFlushTest, ConversionsBesideTheLeastNormalNumber) {
  int wrong = 0, wrong_plain = 0, in_window = 0;
  for (int i = -1000; i <= 1000; ++i) {
    const double value = std::copysign(0x1p-126 + i * 0x1p-160, i % 3 - 1);
    const double magnitude = std::abs(value);
    const float expected = magnitude >= 0x1p-126 - 0x1p-151 ? 0x1p-126f : 0;  // of these values
    const uint32_t bits = BitsOf(std::copysign(expected, static_cast<float>(i % 3 - 1)));
    wrong += BitsOf(CanonicalCast<float>(value)) != bits;
    wrong_plain += BitsOf(static_cast<float>(value)) != bits;
    in_window += magnitude < 0x1p-126 && expected != 0;
    EXPECT_EQ(CanonicalCast<double>(value), value);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(in_window, 512);
  EXPECT_EQ(wrong_plain, kFlushesBeforeRounding ? in_window : 0);
}

}  // namespace
}  // namespace elastor
