#include "trainer/prepare/guess/types.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

SampleColumn ColumnOf(const std::string& name, const std::vector<std::string>& values) {
  SampleColumn column;
  column.name = name;
  for (const std::string& value : values) column.Add(value);
  return column;
}

// Integers 0, step, 2 step, ..., each in two rows.
SampleColumn Integers(const std::string& name, int count, int step) {
  std::vector<std::string> values;
  for (int i = 0; i < 2 * count; ++i) values.push_back(std::to_string(i / 2 * step));
  return ColumnOf(name, values);
}

std::string TypeOf(const SampleColumn& column) {
  return ColumnType(column, column.count, false, ",");
}

TEST(TypesTest, ATimeHasOneFormatInAllValues) {
  EXPECT_EQ(TimeFormatOf(ColumnOf("t", {"1500000000", "1500000001", "1500000002"})),
            Field::UNIX_SECONDS);
  EXPECT_EQ(TimeFormatOf(ColumnOf("t", {"1500000000", "1500000001", "7"})), std::nullopt);
  EXPECT_EQ(TimeFormatOf(ColumnOf("t", {"1500000000", "1500000001"})), std::nullopt);
}

TEST(TypesTest, QuantitiesAreFractionsOrManyIntegersThatAreNoNames) {
  EXPECT_TRUE(IsQuantity(ColumnOf("a", {"0.5", "1"}), 2));
  EXPECT_TRUE(IsQuantity(Integers("age", 60, 1), 120));
  EXPECT_FALSE(IsQuantity(Integers("user_id", 60, 1), 120));
  EXPECT_FALSE(IsQuantity(Integers("grade", 6, 1), 12));
  EXPECT_FALSE(IsQuantity(ColumnOf("a", {"x", "1"}), 2));
}

TEST(TypesTest, ColumnsThatTellNothingOrTooMuchAreIgnored) {
  EXPECT_EQ(ColumnType(ColumnOf("a", {"0", "1"}), 2, true, ","), "IGNORED  # tells the label");
  EXPECT_EQ(TypeOf(ColumnOf("a", {"x", "x"})), "IGNORED  # the same in all rows");
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("n" + std::to_string(i));
  EXPECT_EQ(TypeOf(ColumnOf("a", names)), "IGNORED  # another value in every row");
  names.pop_back();
  EXPECT_EQ(TypeOf(ColumnOf("a", names)), "CATEGORICAL min_count: 2");
}

TEST(TypesTest, ItemsMakeABagUnlessTheirSeparatorIsTheDelimiter) {
  const SampleColumn genres = ColumnOf("genres", {"a|b", "a", "b|c|d"});
  EXPECT_EQ(TypeOf(genres), "MULTI_HOT pooling: MEAN separator: \"|\" max_length: 3");
  EXPECT_EQ(ColumnType(genres, 3, false, "|"), "CATEGORICAL min_count: 2");
  EXPECT_EQ(TypeOf(ColumnOf("item_seq", {"1^2", "3", "4"})),
            "SEQUENCE pooling: MEAN separator: \"^\" max_length: 2");
}

TEST(TypesTest, NumbersWithALongTailAreTakenAsLogarithms) {
  EXPECT_EQ(TypeOf(ColumnOf("a", {"0.5", "1", "2"})), "NUMERIC transform: STANDARDIZE");
  EXPECT_EQ(TypeOf(ColumnOf("a", {"0.5", "1", "1", "1", "1", "1", "1", "1", "1", "900"})),
            "NUMERIC transform: LOG2_STANDARDIZE");
}

TEST(TypesTest, ALabelSaysWhatIsPositive) {
  EXPECT_EQ(LabelType(ColumnOf("a", {"0", "1"})), "LABEL");
  EXPECT_EQ(LabelType(ColumnOf("a", {"no", "yes"})), "LABEL positive: \"yes\" negative: \"no\"");
  EXPECT_EQ(LabelType(ColumnOf("a", {"1", "2", "5"})), "LABEL at_least: 5");
}

}  // namespace
}  // namespace elastor
