#include "trainer/prepare/guess/label.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

SampleColumn ColumnOf(const std::string& name, const std::vector<std::string>& values) {
  SampleColumn column;
  column.name = name;
  for (const std::string& value : values) column.Add(value);
  return column;
}

TEST(LabelTest, ANamedZeroOrOneIsBetterThanTextsThanRatings) {
  EXPECT_EQ(LabelScore(ColumnOf("Click", {"0", "1"}), true), 6);
  EXPECT_EQ(LabelScore(ColumnOf("Click", {"0", "1"}), false), 4);
  EXPECT_EQ(LabelScore(ColumnOf("sex", {"f", "m"}), true), 3);
  EXPECT_EQ(LabelScore(ColumnOf("rating", {"1", "3", "5"}), true), 5);
  EXPECT_EQ(LabelScore(ColumnOf("a", {"1", "3", "5"}), true), 1);
  EXPECT_EQ(LabelScore(ColumnOf("a", {"1", "3", "50"}), true), 0);
  EXPECT_EQ(LabelScore(ColumnOf("click", {"0", "1", ""}), true), 0);
}

TEST(LabelTest, TheBestCandidateComesFirst) {
  SampleColumns sample;
  sample.rows = 2;
  sample.columns = {ColumnOf("sex", {"f", "m"}), ColumnOf("town", {"b", "c"}),
                    ColumnOf("id", {"20", "30"}), ColumnOf("y", {"0", "1"})};
  const auto candidates = LabelCandidates(sample, true, "f");
  ASSERT_TRUE(candidates.ok()) << candidates.status().message();
  EXPECT_EQ(*candidates, (std::vector<size_t>{3, 1, 0}));
}

TEST(LabelTest, RefusesASampleWithoutRowsOrLabel) {
  SampleColumns sample;
  sample.columns = {ColumnOf("a", {"20", "30"})};
  const auto empty = LabelCandidates(sample, true, "f");
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.status().message(), "f: no rows found");
  sample.rows = 2;
  const auto none = LabelCandidates(sample, true, "f");
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(none.status().message().starts_with("f: no column can be the label"));
}

TEST(LabelTest, AGivenLabelMustBeThereAndHaveTwoValuesOrNumbers) {
  const std::vector<SampleColumn> columns = {ColumnOf("t", {"a", "b", "c"}),
                                             ColumnOf("n", {"1", "5", "90"})};
  const auto numbers = GivenLabel(columns, "n");
  ASSERT_TRUE(numbers.ok()) << numbers.status().message();
  EXPECT_EQ(*numbers, 1u);
  const auto texts = GivenLabel(columns, "t");
  ASSERT_FALSE(texts.ok());
  EXPECT_EQ(texts.status().message(),
            "--label=t: found 3 values; expected 0 and 1, two texts, or numbers");
  const auto unknown = GivenLabel(columns, "u");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().message(), "--label=u: no such column; expected one of t, n");
}

TEST(LabelTest, PositiveIsTheMeaningElseTheRarerText) {
  EXPECT_EQ(PositiveText(ColumnOf("a", {"Yes", "Yes", "no"})), "Yes");
  EXPECT_EQ(PositiveText(ColumnOf("a", {"blue", "red", "red"})), "blue");
  EXPECT_EQ(PositiveRate(ColumnOf("a", {"blue", "red", "red", "red"})), 0.25);
}

TEST(LabelTest, RatingsAboveTheMeanArePositive) {
  const SampleColumn ratings = ColumnOf("a", {"1", "2", "4", "5"});
  EXPECT_EQ(LabelThreshold(ratings), 4);
  EXPECT_EQ(PositiveRate(ratings), 0.5);
}

TEST(LabelTest, FindsColumnsThatTellTheLabel) {
  Schema schema;
  schema.set_delimiter(",");
  const TextSample text{{"f"}, {{"0,1,a", "1,0,b", "0,1,b"}}};
  const SampleColumns sample = ReadColumns(schema, 3, text);
  EXPECT_EQ(LabelCopies(schema, text, sample.columns, 0), (std::vector<bool>{false, true, false}));
}

}  // namespace
}  // namespace elastor
