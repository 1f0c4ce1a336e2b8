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

TEST(TypesTest, TimesOfAllFormats) {
  const struct {
    Field::TimeFormat format;
    Texts texts;
  } kColumns[] = {
      {Field::UNIX_SECONDS, {"1500000000.5", "1500000001.0", "1500000002"}},
      {Field::UNIX_MILLISECONDS, {"1500000000000", "1500000000250", "1500000000500"}},
      {Field::UNIX_MICROSECONDS, {"1500000000000000", "1500000000250000", "1500000000500001"}},
      {Field::UNIX_NANOSECONDS,
       {"1500000000000000000", "1500000000000000001", "1500000000000000002"}},
      {Field::YYYYMMDDHHMMSS, {"20140221", "20111213", "20101112"}},
      {Field::YYYYMMDDHHMMSS, {"2014022105", "2011121323", "2010111200"}},
      {Field::ISO_8601, {"2014-10-21T05:00:00Z", "2014-10-21 07:00:00+02:00", "2014-10-22"}},
      {Field::YYYY_MM_DD_HH_MM_SS, {"2014-10-21 05:00:00.125", "2014-10-21 05:00", "2014-10-22"}},
      {Field::YYYY_MM_DD, {"2014/10/21", "2014/10/22 5:00", "2014/1/2"}},
      {Field::YYYY_MM_DD, {"2014-10-21", "2014-1-2", "2014-10-22"}},
      {Field::DD_MM_YYYY, {"21.10.2014", "22.10.2014", "1.2.2014"}},
      {Field::DD_MM_YYYY, {"21/10/2014", "22/10/2014", "1/2/2014"}},
      {Field::MM_DD_YYYY, {"10/21/14 5:00 PM", "10/22/14 12:00 AM", "1/2/14"}}};
  for (const auto& column : kColumns) {
    const ColumnProposal proposal = Propose(ColumnOf("ts", column.texts));
    EXPECT_EQ(proposal.time, column.format) << column.texts[0];
    EXPECT_EQ(proposal.doubt, "") << column.texts[0];
  }
  EXPECT_EQ(Propose(ColumnOf("v", {"20140221", "20111213", "20101112"})).doubt,
            "taken for dates, 2010-11-12 to 2014-02-21");
  EXPECT_EQ(Propose(ColumnOf("d", {"1/2/2014", "3/4/2014", "12/12/2014"})).doubt,
            "taken for dates with the month first; no day is beyond the 12th");
  const ColumnProposal points = Propose(ColumnOf("d", {"1.2.2014", "3.4.2014", "5.6.2014"}));
  EXPECT_EQ(points.time, Field::DD_MM_YYYY);
  EXPECT_EQ(points.doubt, "taken for dates with the day first; no day is beyond the 12th");
}

TEST(TypesTest, TimesThatNoFormatReadsAreLeftOut) {
  ExpectLeftOut(ColumnOf("day", {"930101", "940102", "950103"}), "whose digits");
  ExpectLeftOut(ColumnOf("a", {"21.10.2014", "10/22/2014", "23.10.2014"}),
                "times such as '10/22/2014', which no one time_format reads");
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

// Each of `count` numbers with a fraction, with `before` and `after` around it, and texts in half
// as many rows.
SampleColumn Written(int count, const std::string& before, const std::string& after,
                     const std::string& text = "") {
  Texts values;
  for (int i = 0; i < count; ++i) {
    values.push_back(before + std::to_string(i) + ".25" + after);
    if (i % 2 == 0 && !text.empty()) values.push_back(text);
  }
  return ColumnOf("v", values);
}

TEST(TypesTest, NumbersWithUnitsAreLeftOut) {
  ExpectLeftOut(Written(21, "", " kg"), "numbers such as '0.25 kg'");
  ExpectLeftOut(Written(21, "~", ""), "numbers such as '~0.25'");
  ExpectCertain(Written(20, "", " kg"), "CATEGORICAL min_count: 2");
  ExpectCertain(Written(30, "n", ""), "CATEGORICAL min_count: 2");
}

TEST(TypesTest, ATextInManyRowsOfNumbersIsAMark) {
  ExpectLeftOut(Written(40, "", "", "unknown"), "numbers but for 1 other text such as 'unknown'");
  Texts days;
  for (int i = 1; i < 29; ++i) {
    days.push_back((i < 10 ? "2020-01-0" : "2020-01-") + std::to_string(i));
    days.emplace_back("9999-12-31");
  }
  ExpectLeftOut(ColumnOf("v", days), "times but for 1 other text such as '9999-12-31'");
}

TEST(TypesTest, NumbersFarFromAllOthersMayMeanMissing) {
  const Texts numbers = {"0.5", "1.5", "2.5", "9.5", "0.5", "3.5"};
  for (const std::string mark : {"999", "-999.0", "9999"}) {
    Texts values = numbers;
    values.push_back(mark);
    EXPECT_THAT(Propose(ColumnOf("v", values)).doubt, HasSubstr("may mean missing")) << mark;
  }
  Texts repeated = {"-888", "-888"};
  for (int i = 0; i < 30; ++i) repeated.push_back(std::to_string(i) + ".5");
  EXPECT_EQ(Propose(ColumnOf("v", repeated)).doubt,
            "-888 is far from all other numbers, and may mean missing");
  repeated.erase(repeated.begin());
  ExpectCertain(ColumnOf("v", repeated), kNumber);
  Texts others = numbers;
  others.emplace_back("998");
  ExpectCertain(ColumnOf("v", others), kNumber);
  ExpectCertain(ColumnOf("v", {"999", "0.5", "700.5"}), kNumber);
}

TEST(TypesTest, PointsMayStandBetweenThousands) {
  EXPECT_EQ(Propose(ColumnOf("v", {"957", "1.041", "12.500"})).doubt,
            "the point of '1.041' may stand between thousands");
  ExpectCertain(ColumnOf("v", {"957", "1.041", "0.500"}), kNumber);
  ExpectCertain(ColumnOf("v", {"957", "1.041", "12.5"}), kNumber);
}

TEST(TypesTest, NamesWrittenInSeveralWaysAreDoubted) {
  EXPECT_EQ(Propose(ColumnOf("user_id", {"7", "7.0", "8"})).doubt,
            "'7' and '7.0' are two values here, and one number");
  EXPECT_EQ(Propose(ColumnOf("user_id", {"7", "00007", "8"})).doubt,
            "'00007' and '7' are two values here, and one number");
  EXPECT_EQ(Propose(ColumnOf("ad_id", {"1.18E+11", "1.19E+11"})).doubt,
            "numbers with an exponent, as of a spreadsheet, have lost digits");
  ExpectCertain(ColumnOf("user_id", {"12345678901234567890", "12345678901234567891", "1", "1"}),
                "CATEGORICAL min_count: 2");
  ExpectCertain(ColumnOf("user_id", {"7.0", "8.0", "7.0"}), "CATEGORICAL min_count: 2");
}

// Each of `count` numbers from 10 on between two texts.
Texts Around(int count, const std::string& before, const std::string& after) {
  Texts texts;
  for (int i = 10; i < 10 + count; ++i) texts.push_back(before + std::to_string(i) + after);
  return texts;
}

TEST(TypesTest, PairsOfLibsvmAreLeftOut) {
  ExpectLeftOut(ColumnOf("v", Around(30, "2:0.", "")), "pairs such as '2:0.10'");
  ExpectLeftOut(ColumnOf("v", Around(30, "0 1:2 7:", "")), "pairs such as '0 1:2 7:10'");
  ExpectLeftOut(ColumnOf("v", {"3:1", "3:nan", "3:1"}), "pairs such as '3:1'");
  ExpectCertain(ColumnOf("v", {"16:9", "4:3", "16:9", "4:3"}), "CATEGORICAL min_count: 2");
}

TEST(TypesTest, TextsOfOneFormAreDoubted) {
  for (const Texts& texts :
       {Around(30, "2014-3", ""), Around(30, "P", "D"), Around(30, "/Date(", ")/"),
        Around(30, "ca. ", ""), Around(30, "20140816T0100", "Z"),
        Around(30, "2014\u5e74", "\u65e5")}) {
    EXPECT_THAT(Propose(ColumnOf("v", texts)).doubt, HasSubstr("of one form")) << texts[0];
  }
  Texts digits;
  for (int i = 0; i < 30; ++i) {
    std::string text;
    for (const char c : std::to_string(i + 100)) text += std::string("\xd9") + char(0xa0 + c - '0');
    digits.push_back(text);
  }
  EXPECT_THAT(Propose(ColumnOf("v", digits)).doubt, HasSubstr("of one form"));
  EXPECT_THAT(Propose(ColumnOf("v", {"\u2605", "\u2605\u2605", "\u2605\u2605\u2605"})).doubt,
              HasSubstr("by their length"));
  ExpectCertain(ColumnOf("v", Around(30, "item_", "")), "CATEGORICAL min_count: 2");
  Texts hashes = Around(30, "", "fb1");
  hashes.resize(6);
  for (int i = 0; i < 300; ++i) hashes.push_back("68fd1e64");
  for (const char* digit : {"a", "b", "c", "d", "e", "f"}) {
    for (const char* next : {"1a", "c7", "3d"}) hashes.push_back(std::string(digit) + next);
  }
  ExpectCertain(ColumnOf("v", hashes), "CATEGORICAL");
  ExpectCertain(ColumnOf("order_code", Around(30, "A-", "-7")), "CATEGORICAL min_count: 2");
}

TEST(TypesTest, FarYearsOfTwoDigitsAreDoubted) {
  EXPECT_EQ(Propose(ColumnOf("birth_date", {"23.05.81", "22.10.43", "1.2.77"})).doubt,
            "years of two digits: '22.10.43' is taken for 2043-10-22");
  EXPECT_EQ(Propose(ColumnOf("day", {"23.05.21", "22.10.39", "1.2.77"})).doubt, "");
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
  // The newest ids are the commonest.
  Texts newest;
  for (int value = 0; value < 80; ++value) {
    for (int row = 0; row < value; ++row) newest.push_back(std::to_string(value + 20));
  }
  EXPECT_NE(Propose(ColumnOf("v", newest)).doubt, "");
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
  EXPECT_THAT(Propose(ColumnOf("isFlaggedFraud", {"0", "1"})).doubt, HasSubstr("second label"));
  const ColumnProposal marked =
      ProposeColumn(ColumnOf("a", {"-1", "-1", "7"}), true, 3, Telling::kMark, ",");
  EXPECT_EQ(marked.type, "IGNORED");
  EXPECT_THAT(marked.doubt, StartsWith("'-1' in all rows where the label has one value"));
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

TEST(TypesTest, TextsThatSteerATerminalAreEscaped) {
  EXPECT_EQ(ProtoQuoted("caf\u00e9"), "\"caf\u00e9\"");
  EXPECT_EQ(ProtoQuoted("a\u202eb"), "\"a\\342\\200\\256b\"");
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
