#include "trainer/prepare/guess/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/trainer/prepare/guess/column_of.h"

namespace elastor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Integers first, first + step, ..., each in `rows` rows.
SampleColumn Integers(const std::string& name, int count, int64_t step, int64_t first = 0,
                      int rows = 2) {
  Texts values;
  for (int i = 0; i < rows * count; ++i) values.push_back(std::to_string(first + i / rows * step));
  return ColumnOf(name, values);
}

ColumnProposal Propose(const SampleColumn& column, bool named = true) {
  return ProposeColumn(column, named, column.count + column.missing, Telling::kNothing, ",");
}

// The type, or that it is left out with a doubt that has `doubt` in it.
void ExpectLeftOut(const SampleColumn& column, const std::string& doubt, bool named = true) {
  const ColumnProposal proposal = Propose(column, named);
  EXPECT_EQ(proposal.type, "IGNORED") << column.name;
  EXPECT_THAT(proposal.doubt, HasSubstr(doubt)) << column.name;
}

void ExpectCertain(const SampleColumn& column, const std::string& type, bool named = true) {
  const ColumnProposal proposal = Propose(column, named);
  EXPECT_EQ(proposal.type, type) << column.name;
  EXPECT_EQ(proposal.doubt, "") << column.name;
}

constexpr char kNumber[] = "NUMERIC transform: STANDARDIZE";

TEST(TypesTest, DatesAndTimelySecondsAreTimes) {
  const Texts dates = {"1931-02-03", "2014-10-21", "2014-10-22"};
  EXPECT_EQ(Propose(ColumnOf("a", dates)).time, Field::YYYY_MM_DD_HH_MM_SS);
  EXPECT_EQ(Propose(ColumnOf("hour", {"14102100", "14102101", "14102123"})).time, Field::YYMMDDHH);
  const Texts seconds = {"874724710", "874724711", "891724712"};  // MovieLens, 1997
  EXPECT_EQ(Propose(ColumnOf("timestamp", seconds)).time, Field::UNIX_SECONDS);
  EXPECT_EQ(Propose(ColumnOf("timestamp", seconds)).doubt, "");
  const ColumnProposal unnamed = Propose(ColumnOf("c4", seconds), false);
  EXPECT_EQ(unnamed.time, Field::UNIX_SECONDS);
  EXPECT_EQ(unnamed.doubt, "taken for times, 1997-09-20 to 1998-04-04");
  EXPECT_EQ(Propose(ColumnOf("ts", {"1500000000", "1500000001", "7"})).time, std::nullopt);
}

TEST(TypesTest, IdsFromAThousandMillionOnAreNoTimes) {
  const SampleColumn ids = Integers("ts", 300, 37, 1000000037);
  EXPECT_THAT(Propose(ids).doubt, StartsWith("taken for times, 2001-09-09"));
  EXPECT_EQ(Propose(Integers("advertiser_id", 300, 37, 1000000037)).type,
            "CATEGORICAL min_count: 2");
  const ColumnProposal other = Propose(Integers("v", 300, 37, 1400000000));
  EXPECT_EQ(other.time, std::nullopt);
  EXPECT_EQ(other.doubt, "may be times, 2014-05-13 to 2014-05-13");
}

TEST(TypesTest, TimesThatNoFormatReadsAreLeftOut) {
  ExpectLeftOut(Integers("ts", 300, 250, 1500000000000), "parts of a second");
  ExpectLeftOut(ColumnOf("ts", {"1500000000.5", "1500000001.0", "1500000002.0"}), "with a point");
  ExpectLeftOut(ColumnOf("day", {"20140221", "20111213", "20101112"}), "whose digits");
  ExpectLeftOut(ColumnOf("a", {"21.10.2014", "22.10.2014"}), "times such as '21.10.2014'");
  ExpectLeftOut(ColumnOf("a", {"2014-10-21T05:00:00Z", "2014-10-21T06:00:00Z"}), "time_format");
  ExpectLeftOut(
      ColumnOf("a", {"2014-10-21", "2014-10-22", "2014-10-23", "2014-10-24", "2014-10-25", "soon"}),
      "times but for 1 other text such as 'soon'");
}

TEST(TypesTest, NumbersAsPeopleWriteThemAreLeftOut) {
  ExpectLeftOut(ColumnOf("price", {"12,50", "3,20"}), "numbers such as '12,50'");
  ExpectLeftOut(ColumnOf("price", {"950.00", "1,234.50"}), "numbers such as '1,234.50'");
  ExpectLeftOut(ColumnOf("rate", {"1.5%", "2%"}), "'1.5%'");
  ExpectLeftOut(ColumnOf("a", {"1.5", "2.5", "3.5", "4.5", "5.5", "many"}),
                "numbers but for 1 other text such as 'many'");
}

TEST(TypesTest, FractionsAreNumbersAndNeverLogarithms) {
  ExpectCertain(ColumnOf("a", {"0.5", "1", "2"}), kNumber);
  ExpectCertain(ColumnOf("a", {"0.5", "1", "1", "1", "1", "1", "1", "1", "1", "900"}), kNumber);
}

TEST(TypesTest, ANameTellsQuantitiesFromThings) {
  ExpectCertain(Integers("age", 60, 1), kNumber);
  ExpectCertain(Integers("user_id", 60, 1), "CATEGORICAL min_count: 2");
  ExpectCertain(Integers("grade", 6, 1), "CATEGORICAL min_count: 2");
  EXPECT_NE(Propose(Integers("v", 60, 1)).doubt, "");
  EXPECT_NE(Propose(Integers("v", 60, 1000)).doubt, "");
  ExpectCertain(Integers("v", 60, 1, -30), kNumber);
  ExpectCertain(ColumnOf("a", {"01234", "00501", "99999", "01234"}), "CATEGORICAL min_count: 2");
}

TEST(TypesTest, CountsGetLogarithms) {
  Texts counts;
  for (int i = 0; i < 400; ++i) {
    counts.push_back(std::to_string(static_cast<int>(1000 * std::pow(i / 400.0, 8))));
  }
  ExpectCertain(ColumnOf("v", counts), "NUMERIC transform: LOG2_STANDARDIZE");
}

// How often they occur goes up and down: 1, 2, ..., 40, ..., 2, 1 rows.
TEST(TypesTest, IntegersWithAShapeAreQuantities) {
  Texts ages, ids;
  for (int value = 0; value < 80; ++value) {
    for (int row = 0; row < 40 - std::abs(value - 40); ++row) {
      ages.push_back(std::to_string(value + 20));
      ids.push_back(std::to_string(value * 37 % 80 + 20));
    }
  }
  ExpectCertain(ColumnOf("v", ages), kNumber);
  EXPECT_NE(Propose(ColumnOf("v", ids)).doubt, "");
}

TEST(TypesTest, ColumnsThatTellNothingOrTooMuchAreIgnored) {
  const auto reason_of = [](const SampleColumn& column, Telling telling = Telling::kNothing) {
    return ProposeColumn(column, true, column.count, telling, ",").reason;
  };
  EXPECT_EQ(reason_of(ColumnOf("a", {"0", "1"}), Telling::kValue), "tells the label");
  EXPECT_EQ(reason_of(ColumnOf("a", {"x", "x"})), "the same in all rows");
  EXPECT_EQ(reason_of(ColumnOf("a", {"", ""})), "missing in all rows");
  ExpectCertain(ColumnOf("a", {"x", "x", ""}), "CATEGORICAL");
  Texts names;
  for (int i = 0; i < 100; ++i) names.push_back("n" + std::to_string(i));
  EXPECT_EQ(reason_of(ColumnOf("a", names)), "another value in every row");
  names.pop_back();
  ExpectCertain(ColumnOf("a", names), "CATEGORICAL min_count: 2");
  EXPECT_EQ(reason_of(Integers("v", 200, 1, 1, 1)), "another value in every row");
  ExpectLeftOut(Integers("v", 200, 17, 1, 1), "may be a quantity");
  ExpectCertain(Integers("income", 200, 17, 1, 1), kNumber);
  EXPECT_EQ(ProposeColumn(ColumnOf("a", {"x", ""}), true, 2, Telling::kPresence, ",").type,
            "IGNORED");
  ExpectLeftOut(ColumnOf("conversion", {"0", "1"}), "second label");
}

TEST(TypesTest, ListsComeBeforeWhatEveryRowHasOfItsOwn) {
  Texts histories;
  for (int i = 0; i < 200; ++i) {
    histories.push_back("i" + std::to_string(i % 30) + "|i" + std::to_string(i % 7) + "|i" +
                        std::to_string(i));
  }
  ExpectCertain(ColumnOf("hist_items", histories),
                "SEQUENCE pooling: MEAN separator: \"|\" max_length: 3");
  const SampleColumn genres = ColumnOf("genres", {"a|b", "a", "b|c|d", "c|d"});
  ExpectCertain(genres, "MULTI_HOT pooling: MEAN separator: \"|\" max_length: 3");
  EXPECT_EQ(ProposeColumn(genres, true, 4, Telling::kNothing, "|").type,
            "CATEGORICAL min_count: 2");
  std::string longest = "t0";
  for (int i = 1; i < 300; ++i) longest += "|t" + std::to_string(i);
  const ColumnProposal cut = Propose(ColumnOf("tags", {longest, "t1", "t1|t2"}));
  EXPECT_THAT(cut.type, HasSubstr("max_length: 256"));
  EXPECT_THAT(cut.doubt, StartsWith("lists of up to 300 items"));
}

TEST(TypesTest, ALabelSaysWhatIsPositive) {
  EXPECT_EQ(LabelType(ColumnOf("a", {"0", "1"})), "LABEL");
  EXPECT_EQ(LabelType(ColumnOf("a", {"no", "yes"})), "LABEL positive: \"yes\" negative: \"no\"");
  EXPECT_EQ(LabelType(ColumnOf("a", {"1", "2", "5"})), "LABEL at_least: 5");
  EXPECT_EQ(LabelType(ColumnOf("a", {"1", "2"})), "LABEL at_least: 2");
  EXPECT_EQ(LabelType(ColumnOf("a", {"1234567.25", "3"})), "LABEL at_least: 1234567.25");
  EXPECT_EQ(LabelType(ColumnOf("a", {"yes", "no", "open"})), "LABEL positive: \"yes\"");
}

}  // namespace
}  // namespace elastor
