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

DelimitedFindings Find(const TextSample& text, size_t columns, bool header, size_t label) {
  DelimitedFindings found;
  found.schema.set_delimiter(",");
  found.schema.set_header(header);
  found.sample = ReadColumns(found.schema, columns, text);
  found.candidates = {label};
  found.copies.assign(columns, false);
  return found;
}

TEST(ProposalTest, TellsFilesRowsAndLayoutFirst) {
  EXPECT_EQ(ProposalHead({{"d/f", "g"}, {{"ab"}, {"c", "d"}}}, 2, 1, "words"),
            "# Proposed by prepare --guess from the first 7 bytes of f, g:\n"
            "# 2 rows, 1 bad ones; words.\n");
}

TEST(ProposalTest, ColumnsOfOneTypeThatFollowEachOtherShareAnEntry) {
  const TextSample text{{"f"}, {{"0,.5,.7,.1,a", "1,.6,.2,.9,b"}}};
  EXPECT_EQ(SchemaOf(DelimitedProposal(text, Find(text, 5, false, 0))),
            "layout: DELIMITED\ndelimiter: \",\"\nmax_bad_rows: 100\n"
            "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n"
            "fields { name: \"c1\" type: LABEL }\n"
            "fields { names: \"c2..c4\" type: NUMERIC transform: STANDARDIZE }\n"
            "fields { name: \"c5\" type: CATEGORICAL min_count: 2 }\n");
}

TEST(ProposalTest, NamesOfAHeaderAreListedAndOneWithDotsStandsAlone) {
  const TextSample text{{"f"}, {{"y,a,b,c..d", "0,.5,.7,.1", "1,.6,.2,.9"}}};
  const std::string schema = SchemaOf(DelimitedProposal(text, Find(text, 4, true, 0)));
  EXPECT_NE(schema.find("header: true\n"), schema.npos) << schema;
  EXPECT_NE(schema.find("fields { names: [\"a\", \"b\"] type: NUMERIC transform: STANDARDIZE }\n"
                        "fields { name: \"c..d\" type: NUMERIC transform: STANDARDIZE }\n"),
            schema.npos)
      << schema;
}

TEST(ProposalTest, TheFirstTimeIsTheRowsAndEachHasItsHourAndWeekday) {
  const TextSample text{
      {"f"}, {{"0,1500000000,1500000007", "1,1500000001,1500000008", "1,1500000002,1500000009"}}};
  const std::string schema = SchemaOf(DelimitedProposal(text, Find(text, 3, false, 0)));
  EXPECT_NE(schema.find("fields { name: \"c2\" type: TIME }\n"
                        "fields {\n  name: \"c2_hour\" column: \"c2\"\n"),
            schema.npos)
      << schema;
  EXPECT_NE(schema.find("fields {\n  name: \"c3\"\n  type: CATEGORICAL transform: HOUR\n}\n"),
            schema.npos)
      << schema;
}

TEST(ProposalTest, RowsWithoutALabelMayBeMany) {
  const TextSample text{{"f"}, {{"0,a", "1,b", ",a", ",b"}}};
  const std::string proposal = DelimitedProposal(text, Find(text, 2, false, 0));
  EXPECT_NE(proposal.find("# Rows without the label are bad rows: 0.5 of all.\n"
                          "max_bad_rows: 1000000000\n"),
            proposal.npos)
      << proposal;
}

}  // namespace
}  // namespace elastor
