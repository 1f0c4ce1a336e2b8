#include "trainer/prepare/guess/label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/prepare/guess/column_of.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// `rows` times 0, of which `ones` are 1.
SampleColumn Clicks(const std::string& name, int rows, int ones) {
  std::vector<std::string> values(rows, "0");
  std::fill_n(values.begin(), ones, "1");
  return ColumnOf(name, values);
}

SampleColumns Sample(std::vector<SampleColumn> columns) {
  SampleColumns sample;
  sample.rows = columns[0].count + columns[0].missing;
  sample.named = true;
  sample.columns = std::move(columns);
  return sample;
}

std::vector<size_t> Candidates(const SampleColumns& sample) {
  const auto candidates = LabelCandidates(sample, "f");
  EXPECT_TRUE(candidates.ok()) << candidates.status().message();
  return candidates.ok() ? *candidates : std::vector<size_t>();
}

TEST(LabelTest, FormsSayHowValuesAreZeroAndOne) {
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"0", "1.0"})), LabelForm::kZeroOne);
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"-1", "+1"})), LabelForm::kZeroOne);
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"-1", "0"})), LabelForm::kTwoNumbers);
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"1", "2"})), LabelForm::kTwoNumbers);
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"1", "x"})), LabelForm::kTwoTexts);
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"1", "2", "5"})), LabelForm::kRatings);
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"x", "y", "z"})), LabelForm::kTexts);
  EXPECT_EQ(LabelFormOf(ColumnOf("a", {"1"})), LabelForm::kNone);
}

TEST(LabelTest, ANameDecidesBeforeThePlace) {
  const SampleColumns sample =
      Sample({ColumnOf("is_weekend", {"0", "1"}), ColumnOf("Clicked on Ad", {"0", "1"})});
  EXPECT_THAT(Candidates(sample), ElementsAre(1, 0));
  EXPECT_EQ(LabelDoubt(sample, {1, 0}, false), "");
  EXPECT_FALSE(MayBeLabel(sample, {1, 0}, 0));
}

TEST(LabelTest, AFewMissingClicksDoNotMakeSexTheLabel) {
  const SampleColumns sample =
      Sample({ColumnOf("gender", {"m", "f", "f", "m"}), ColumnOf("click", {"0", "1", "", "0"})});
  EXPECT_THAT(Candidates(sample), ElementsAre(1, 0));
}

TEST(LabelTest, WhereNoNameHelpsAllThatMayBeItAreDoubted) {
  const SampleColumns sample = Sample({ColumnOf("sex", {"f", "m"}), ColumnOf("town", {"b", "c"}),
                                       ColumnOf("id", {"20", "30"}), ColumnOf("u", {"0", "1"})});
  const std::vector<size_t> candidates = Candidates(sample);
  EXPECT_THAT(candidates, ElementsAre(3, 1, 2, 0));
  EXPECT_EQ(LabelDoubt(sample, candidates, false), "taken for the label; 'town' can be it, too");
  EXPECT_TRUE(MayBeLabel(sample, candidates, 1));
  EXPECT_FALSE(MayBeLabel(sample, candidates, 0));
  EXPECT_FALSE(MayBeLabel(sample, candidates, 3));
  EXPECT_EQ(LabelDoubt(sample, {3}, true), "");
}

TEST(LabelTest, ASecondLabelIsNoInput) {
  const SampleColumns sample =
      Sample({ColumnOf("click", {"0", "1"}), ColumnOf("conversion", {"0", "1"})});
  EXPECT_EQ(LabelDoubt(sample, Candidates(sample), false),
            "taken for the label; 'conversion' can be it, too");
  EXPECT_TRUE(IsSecondLabel(sample.columns[1]));
  EXPECT_FALSE(IsSecondLabel(ColumnOf("clicks", {"0", "1", "7"})));
}

TEST(LabelTest, OnePositiveOfTenThousandIsNoLabelUnlessItsNameSaysSo) {
  EXPECT_EQ(LabelScore(Clicks("a", 10000, 1), true), 0);
  EXPECT_GT(LabelScore(Clicks("a", 10000, 11), true), 0);
  const SampleColumns sample = Sample({Clicks("click", 10000, 1)});
  EXPECT_EQ(LabelDoubt(sample, {0}, false), "only 1 row of 10000 are positive");
}

TEST(LabelTest, HowValuesBecomeZeroAndOneIsDoubtedWhereItIsAGuess) {
  const auto doubt_of = [](const std::string& name, const std::vector<std::string>& values) {
    return LabelDoubt(Sample({ColumnOf(name, values)}), {0}, false);
  };
  EXPECT_EQ(doubt_of("click", {"yes", "no"}), "");
  EXPECT_EQ(doubt_of("click", {"clicked", "not_clicked"}), "");
  EXPECT_EQ(doubt_of("income", {">50K", "<=50K"}), "");
  EXPECT_EQ(doubt_of("class", {"bad", "good", "good"}), "'bad' counts as 1, as the rarest value");
  EXPECT_EQ(doubt_of("class", {"1", "2"}), "numbers from 2 on count as 1");
  EXPECT_EQ(doubt_of("rating", {"1", "2", "4", "5"}),
            "taken for the label, though its name is none; numbers from 4 on count as 1");
  EXPECT_EQ(doubt_of("label", {"0", "1", "-1"}), "has 0, 1 and -1; -1 counts as 0");
  EXPECT_EQ(doubt_of("target", {"yes", "no", "open"}), "all values but 'yes' count as 0");
}

TEST(LabelTest, RefusesASampleWithoutRowsOrLabel) {
  SampleColumns sample = Sample({ColumnOf("a", {"20", "30", "900"})});
  const auto none = LabelCandidates(sample, "f");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(), StartsWith("f: no column can be the label, of 'a'; "));
  sample.named = false;
  EXPECT_THAT(LabelCandidates(sample, "f").status().message(), HasSubstr("which have no header"));
  sample.rows = 0;
  const auto empty = LabelCandidates(sample, "f");
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.status().message(), "f: no rows found");
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
  EXPECT_EQ(PositiveText(ColumnOf("a", {"not_fraud", "fraud", "fraud"})), "fraud");
  EXPECT_EQ(PositiveText(ColumnOf("a", {"blue", "red", "red"})), "blue");
  EXPECT_EQ(PositiveRate(ColumnOf("a", {"blue", "red", "red", "red"})), 0.25);
  EXPECT_EQ(PositiveRate(ColumnOf("a", {"-1", "1", "1", "1"})), 0.75);
  EXPECT_EQ(PositiveRate(ColumnOf("a", {"2", "1", "1", "1"})), 0.25);
}

TEST(LabelTest, RatingsAboveTheMeanArePositive) {
  const SampleColumn ratings = ColumnOf("a", {"1", "2", "4", "5"});
  EXPECT_EQ(LabelThreshold(ratings), 4);
  EXPECT_EQ(PositiveRate(ratings), 0.5);
}

TEST(LabelTest, FindsColumnsThatTellTheLabel) {
  Schema schema;
  schema.set_delimiter(",");
  const TextSample text{{"f"}, {{"0,1,a,", "1,0,b,9:05", "0,1,b,"}}};
  SampleColumns sample = ReadColumns(schema, {"y", "opposite", "c", "when"}, text);
  for (SampleColumn& column : sample.columns) column.Summarise({});
  EXPECT_THAT(
      FindTelling(schema, text, sample.columns, 0),
      ElementsAre(Telling::kNothing, Telling::kValue, Telling::kNothing, Telling::kPresence));
}

}  // namespace
}  // namespace elastor
