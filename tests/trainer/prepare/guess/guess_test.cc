#include "trainer/prepare/guess/guess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Guess(const std::string& text, const std::string& label = "") {
  const auto schema = GuessSchema({WriteScratch("f", text)}, label);
  return schema.ok() ? *schema : schema.status().message();
}

TEST(GuessTest, DoubtsStandAboveTheirFields) {
  std::string csv = "click,country,price,material\n";
  for (int i = 0; i < 40; ++i) {
    csv += std::string(i % 3 == 0 ? "1" : "0") + "," + (i % 2 == 0 ? "None" : "rain") + "," +
           std::to_string(i) + ".5%,wood\n";
  }
  const std::string schema = Guess(csv);
  EXPECT_THAT(schema, HasSubstr("\n# check country: 'None' is taken for a value, and may mean "
                                "missing\nfields { name: \"country\" type: CATEGORICAL }\n"));
  EXPECT_THAT(schema,
              HasSubstr("\n# check price: numbers such as '0.5%', which no schema reads so; "
                        "left out\nfields { name: \"price\" type: IGNORED }\n"));
  EXPECT_THAT(schema, Not(HasSubstr("# check click")));
}

TEST(GuessTest, RowsThatAreLeftOutAreCounted) {
  const std::string schema =
      Guess("click,a\n1,x\n0,y\n0,z,z\n,x\n1,y\n0,x\n1,z\n0,x\n1,x\n1,x\n1,y\n");
  EXPECT_THAT(schema, HasSubstr("\n# 9 rows, 2 bad ones; 2 columns"));
  EXPECT_THAT(schema, HasSubstr("\n# The first bad one: found 3 columns, expected 2.\n"));
}

TEST(GuessTest, AHeaderWithAFaultStillNamesFields) {
  const std::string schema = Guess("click,a,a\n1,0.5,7.5\n0,1.5,8.5\n0,2.5,7.25\n");
  EXPECT_THAT(schema, HasSubstr("not by the header: 'a' names two columns.\n"));
  EXPECT_THAT(schema, HasSubstr("skip_lines: 1\n"));
  EXPECT_THAT(schema, HasSubstr("fields { names: [\"a\", \"a_2\"] type: NUMERIC"));
  EXPECT_THAT(schema, HasSubstr("fields { name: \"click\" type: LABEL }"));
}

TEST(GuessTest, WithoutItsNameTheLabelIsDoubted) {
  const std::string schema = Guess(
      "id,u,click,x\na,1,5\nb,0,1\nc,1,2\nd,0,2\ne,1,3\nf,1,7\n"
      "g,0,9\nh,1,2\ni,0,4\nk,1,6\nl,0,8\n");
  EXPECT_THAT(schema, HasSubstr("not by the header: it has 4 names for 3 columns.\n"));
  EXPECT_THAT(schema, HasSubstr("# check c2: taken for the label without its name\n"));
}

TEST(GuessTest, LinesOfJsonAreRefused) {
  EXPECT_THAT(Guess("{\"u\": \"a, b\", \"click\": 1}\n{\"u\": \"c, d\", \"click\": 0}\n"),
              HasSubstr("f: lines of JSON, which no schema reads; expected delimited text"));
}

// As prepare ends there.
TEST(GuessTest, AQuoteThatStaysOpenIsRefused) {
  std::string csv = "click,a\n";
  for (int i = 0; i < 30; ++i) csv += std::to_string(i % 2) + ",\"x, y\"\n";
  EXPECT_THAT(Guess(csv + "1,\"open\n0,b\n"),
              HasSubstr("f: a quote opens a value of the row '1,\"open?0,b?', and none closes it"));
}

TEST(GuessTest, FilesPutTogetherRepeatTheirHeader) {
  const std::string schema = Guess("click,a\n1,.5\n0,.25\nclick,a\n1,.75\n");
  EXPECT_THAT(schema, HasSubstr("\n# 3 rows, 1 bad ones; 2 columns"));
  EXPECT_THAT(schema, HasSubstr("fields { name: \"click\" type: LABEL }"));
  EXPECT_THAT(schema, HasSubstr("fields { name: \"a\" type: NUMERIC "));
}

TEST(GuessTest, FilesThatItCannotReadAreRefused) {
  EXPECT_THAT(Guess("click,a\r\r\n1,x\r\r\n0,y\r\r\n"), HasSubstr("f: lines end in CR CR LF"));
  const std::string path = WriteScratch("f", "click,a\n1,.5\n0,.25\n");
  EXPECT_EQ(GuessSchema({path, path}).status().message(),
            path + ": stands twice in --guess; expected each file once");
}

TEST(GuessTest, AProposalThatLosesAClassIsRefused) {
  EXPECT_THAT(Guess("a,click\nx,1\ny,1\nz,1\n", "click"),
              HasSubstr("--label=click: found 1 value"));
  EXPECT_THAT(Guess("1 1:1\n1 2:1\n"), HasSubstr("all 2 rows have label 1"));
  EXPECT_THAT(Guess("1 0:3:1 1:4:1\n0 0:2:1 1:5:1\n"),
              HasSubstr("# 2 rows, 0 bad ones; label, then 2 triples field:index:value.\n"));
  EXPECT_THAT(Guess("1 1:1 2:1\n0 3:1\n", "x"), HasSubstr("--label=x: the label of libsvm's"));
}

TEST(GuessTest, TheFirstTimeIsTheRowsUnlessItIsABirth) {
  std::string csv = "click,birth_date,seen,sent_at\n";
  for (int i = 0; i < 9; ++i) {
    const std::string day = "0" + std::to_string(i + 1);
    csv += std::to_string(i % 2) + ",1980-01-" + day + ",2014-10-" + day + ",2014-11-" + day + "\n";
  }
  const std::string schema = Guess(csv);
  EXPECT_THAT(schema, HasSubstr("# check seen: taken for the row's time; 'sent_at' can be it, too\n"
                                "fields { name: \"seen\" type: TIME "));
  EXPECT_THAT(schema, HasSubstr("fields {\n  name: \"birth_date\"\n"));
}

}  // namespace
}  // namespace elastor
