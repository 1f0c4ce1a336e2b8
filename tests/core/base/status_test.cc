#include "core/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace elastor {
namespace {

StatusOr<int> Half(int value) {
  if (value % 2 != 0) return UserError("odd: " + std::to_string(value));
  return value / 2;
}

Status Quarter(int value, int* result) {
  ELASTOR_ASSIGN_OR_RETURN(const int half, Half(value));
  ELASTOR_ASSIGN_OR_RETURN(*result, Half(half));
  return OkStatus();
}

Status QuarterTwice(int value, int* result) {
  ELASTOR_RETURN_IF_ERROR(Quarter(value, result));
  ELASTOR_RETURN_IF_ERROR(Quarter(*result, result));
  return OkStatus();
}

TEST(StatusTest, CodesAreExitCodes) {
  EXPECT_EQ(static_cast<int>(OkStatus().code()), 0);
  EXPECT_EQ(static_cast<int>(UserError("").code()), 2);
  EXPECT_EQ(static_cast<int>(MachineError("").code()), 3);
  EXPECT_EQ(static_cast<int>(DivergedError("").code()), 4);
}

TEST(StatusTest, MessagesAreOneLine) {
  EXPECT_EQ(UserError("a\nb\x1b[2K\t\x7f caf\xc3\xa9").message(),
            "a\\nb\\x1b[2K\t\\x7f caf\xc3\xa9");
  // C1's "begin a control sequence", the override of the direction, the separator of lines.
  EXPECT_EQ(UserError("\u009b2J a\u202etxt.exe\u2028b\u2067\u061c\u200f").message(),
            "\\u009b2J a\\u202etxt.exe\\u2028b\\u2067\\u061c\\u200f");
  const std::string others = "\u00a0\u00e9\u0628\u200d\u2010\u202f\u2070\u20ac \xe2\x80";
  EXPECT_EQ(UserError(others).message(), others);
}

TEST(StatusTest, AnErrorHasNoValue) {
  const StatusOr<int> none = Half(1);
  EXPECT_THROW(none.value(), std::bad_optional_access);
  EXPECT_THROW(*none, std::bad_optional_access);
  EXPECT_EQ(*Half(4), 2);
}

TEST(StatusTest, MacrosReturnTheFirstError) {
  int result = 0;
  EXPECT_TRUE(QuarterTwice(32, &result).ok());
  EXPECT_EQ(result, 2);
  EXPECT_EQ(QuarterTwice(7, &result).message(), "odd: 7");
  EXPECT_EQ(QuarterTwice(12, &result).message(), "odd: 3");
}

TEST(StatusTest, CarriesValuesThatCannotBeCopied) {
  StatusOr<std::unique_ptr<int>> value = std::make_unique<int>(5);
  ASSERT_TRUE(value.ok());
  const std::unique_ptr<int> taken = std::move(value).value();
  EXPECT_EQ(*taken, 5);
}

}  // namespace
}  // namespace elastor
