#include "trainer/prepare/guess/proposal.h"

#include <gtest/gtest.h>

namespace elastor {
namespace {

// The proposal's lines that are no comments.
std::string SchemaOf(const std::string& proposal) {
  std::string text;
  for (size_t begin = 0; begin < proposal.size();) {
    const size_t end = proposal.find('\n', begin) + 1;
    if (proposal[begin] != '#') text += proposal.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

DelimitedFindings Find(const TextSample& text, const std::vector<std::string>& names,
                       size_t label) {
  DelimitedFindings found;
  found.schema.set_delimiter(",");
  found.schema.set_header(text.first_row > 0);
  found.sample = ReadColumns(found.schema, names, text);
  found.sample.named = found.schema.header();
  for (SampleColumn& column : found.sample.columns) column.Summarise({});
  found.candidates = {label};
  found.telling.assign(names.size(), Telling::kNothing);
  found.null_doubts.resize(names.size());
  return found;
}

TEST(ProposalTest, TellsFilesRowsAndLayoutFirst) {
  EXPECT_EQ(
      ProposalHead({{"d/f", "g"}, {{"ab"}, {"c", "d"}}}, {2, 1, 1, "column 2: found x"}, "words"),
      "# Proposed by prepare --guess from the first 7 bytes of f, g:\n"
      "# 2 rows, 1 bad ones; words.\n# The first bad one: column 2: found x.\n");
}

TEST(ProposalTest, ColumnsOfOneTypeThatFollowEachOtherShareAnEntry) {
  const TextSample text{{"f"}, {{"0,.5,.7,.1,a", "1,.6,.2,.9,b"}}};
  const DelimitedFindings found = Find(text, {"c1", "c2", "c3", "c4", "c5"}, 0);
  EXPECT_EQ(SchemaOf(DelimitedProposal(text, found, {2, 0, 1, ""})),
            "layout: DELIMITED\ndelimiter: \",\"\nmax_bad_rows: 100\n"
            "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n"
            "fields { name: \"c1\" type: LABEL }\n"
            "fields { names: \"c2..c4\" type: NUMERIC transform: STANDARDIZE }\n"
            "fields { name: \"c5\" type: CATEGORICAL min_count: 2 }\n");
}

TEST(ProposalTest, NamesOfAHeaderAreListedAndOneWithDotsStandsAlone) {
  const TextSample text{{"f"}, {{"y,a,b,c..d", "0,.5,.7,.1", "1,.6,.2,.9"}}, 1};
  const std::string schema = SchemaOf(DelimitedSchema(Find(text, {"y", "a", "b", "c..d"}, 0), ""));
  EXPECT_NE(schema.find("header: true\n"), schema.npos) << schema;
  EXPECT_NE(schema.find("fields { names: [\"a\", \"b\"] type: NUMERIC transform: STANDARDIZE }\n"
                        "fields { name: \"c..d\" type: NUMERIC transform: STANDARDIZE }\n"),
            schema.npos)
      << schema;
}

TEST(ProposalTest, TheFirstTimeIsTheRowsAndEachHasItsHourAndWeekday) {
  const TextSample text{
      {"f"}, {{"0,1500000000,1500000007", "1,1500000001,1500000008", "1,1500000002,1500000009"}}};
  const std::string schema = SchemaOf(DelimitedSchema(Find(text, {"c1", "c2", "c3"}, 0), ""));
  EXPECT_NE(schema.find("fields { name: \"c2\" type: TIME }\n"
                        "fields {\n  name: \"c2_hour\" column: \"c2\"\n"),
            schema.npos)
      << schema;
  EXPECT_NE(schema.find("fields {\n  name: \"c3\"\n  type: CATEGORICAL transform: HOUR\n}\n"),
            schema.npos)
      << schema;
}

TEST(ProposalTest, BadRowsMayBeAsManyAsTheSampleHas) {
  EXPECT_EQ(BadRowsText({1000, 10, 1, ""}), "max_bad_rows: 100\n");
  EXPECT_EQ(BadRowsText({75, 75, 1, ""}),
            "# Bad rows are left out: 0.5 of all.\nmax_bad_rows: 1000000000\n");
}

TEST(ProposalTest, ADoubtStandsAboveItsFieldAlone) {
  const TextSample text{{"f"}, {{"y,a,b,c", "0,.5,.7,.1", "1,.6,.2,.9"}}, 1};
  DelimitedFindings found = Find(text, {"y", "a", "b", "c"}, 0);
  found.null_doubts[2] = "it is odd";
  const std::string schema = DelimitedSchema(found, "");
  const std::string numeric = " type: NUMERIC transform: STANDARDIZE }\n";
  EXPECT_NE(
      schema.find("fields { name: \"a\"" + numeric + "# check b: it is odd\nfields { name: \"b\"" +
                  numeric + "fields { name: \"c\"" + numeric),
      schema.npos)
      << schema;
}

}  // namespace
}  // namespace elastor
