#include "core/base/text.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace elastor {
namespace {

TEST(TextTest, PiecesAreTextsAndIntegers) {
  const std::string name = "rank";
  EXPECT_EQ(StrCat("the ", name, ' ' + name, " ", 3, " of ", size_t{16}), "the rank rank 3 of 16");
  EXPECT_EQ(StrCat(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(StrCat(), "");
  std::string text = "a";
  StrAppend(&text, "b", 1);
  EXPECT_EQ(text, "ab1");
}

// Whoever writes a number with a fraction says how many digits it has; 'x' would be a number.
template <typename T>
constexpr bool kIsPiece = std::is_constructible_v<TextPiece, T>;
static_assert(kIsPiece<int> && kIsPiece<const char*> && !kIsPiece<double> && !kIsPiece<float> &&
              !kIsPiece<char> && !kIsPiece<bool>);

TEST(TextTest, FormatHasNoLongestText) {
  EXPECT_EQ(Format("%s|%.3f", std::string(5000, 'x').c_str(), 0.5),
            std::string(5000, 'x') + "|0.500");
  EXPECT_EQ(Format("%s", ""), "");
}

TEST(TextTest, SmallTexts) {
  EXPECT_EQ(Join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(Join({}, ", "), "");
  EXPECT_EQ(CountText(1, "rank"), "1 rank");
  EXPECT_EQ(CountText(0, "rank"), "0 ranks");
  EXPECT_EQ(DurationText(64.6), "1:05");
  EXPECT_EQ(DurationText(10000), "2:46:40");
  EXPECT_EQ(LowerCase("AbC \xc3\x84 9"), "abc \xc3\x84 9");
}

}  // namespace
}  // namespace elastor
