#include "trainer/prepare/rows/value_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace elastor {
namespace {

TEST(ValueTextTest, Log2Transform) {
  EXPECT_EQ(Log2Transform(-5), -5);
  EXPECT_EQ(Log2Transform(2), 2);
  EXPECT_EQ(Log2Transform(2.5), 0);
  EXPECT_EQ(Log2Transform(3), 1);        // ln(3)^2 = 1.207
  EXPECT_EQ(Log2Transform(8), 4);        // 4.324
  EXPECT_EQ(Log2Transform(23255), 101);  // 101.08
  EXPECT_TRUE(std::isnan(Log2Transform(NAN)));
  for (int x = 3; x < 20000; ++x) {
    const double log = std::log(static_cast<double>(x));
    ASSERT_EQ(Log2Transform(x), std::floor(log * log)) << x;
    ASSERT_EQ(Log2Transform(x + 0.5), std::floor(std::pow(std::log(x + 0.5), 2))) << x;
  }
}

// Hashes by the package xxhash of Python, xxhash.xxh3_64_intdigest.
TEST(ValueTextTest, HashedKeys) {
  EXPECT_EQ(HashedKey(""), 0u);
  EXPECT_EQ(HashedKey("0"), 0x1982e3a7bb241055u);
  EXPECT_EQ(HashedKey("7"), 0x06eed105b82285fau);
  EXPECT_EQ(HashedKey("07"), 0x3e3d639a1b0b856du);
  EXPECT_EQ(HashedKey("user_1"), 0x20f909ab6f54d5a1u);
  EXPECT_EQ(HashedKey("ü"), 0x5da81d070ce09f6eu);
  EXPECT_EQ(HashedKey("longer than eight bytes"), 0xeb6e5c0e2c5a1d47u);
  EXPECT_EQ(HashedKey(std::string(300, 'x')), 0xa5d1b4607dc83554u);
}

TEST(ValueTextTest, IdentityKeys) {
  const auto key_of = [](std::string_view text) {
    uint64_t key;
    EXPECT_TRUE(ParseKey(text, &key)) << text;
    return key;
  };
  EXPECT_EQ(key_of(""), 0u);
  EXPECT_EQ(key_of("0"), 0u);
  EXPECT_EQ(key_of("-0"), 0u);
  EXPECT_EQ(key_of("007"), 7u);
  EXPECT_EQ(key_of("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(key_of("-1"), ~uint64_t{0});
  EXPECT_EQ(key_of("9223372036854775808"), uint64_t{1} << 63);
  EXPECT_EQ(key_of("-9223372036854775808"), uint64_t{1} << 63);
  for (const char* text : {"18446744073709551616", "-9223372036854775809", "1.0", "1e3", " 1", "1 ",
                           "+1", "-", "--1", "0x1", "one"}) {
    uint64_t key;
    EXPECT_FALSE(ParseKey(text, &key)) << text;
  }
}

TEST(ValueTextTest, ShownIsShortAndPrintable) {
  EXPECT_EQ(Shown("a\tb"), "'a?b'");
  EXPECT_EQ(Shown(std::string(41, 'x')), "'" + std::string(40, 'x') + "...'");
}

TEST(ValueTextTest, ShownIsWholeCharactersAndNamesOtherBytes) {
  EXPECT_EQ(Shown("a\tb\x7f"), "'a?b?'");
  EXPECT_EQ(Shown("caf\xe9 \xc3\xa9"), "'caf\\xe9 \xc3\xa9'");
  EXPECT_EQ(Shown("a\u202eb\xc2\x9b"), "'a\\u202eb\\u009b'");
  EXPECT_EQ(Shown(std::string(39, 'a') + "\xc3\xa9"), "'" + std::string(39, 'a') + "\xc3\xa9'");
  EXPECT_EQ(Shown(std::string(41, 'a')), "'" + std::string(40, 'a') + "...'");
}

}  // namespace
}  // namespace elastor
