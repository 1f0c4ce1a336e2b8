#include "trainer/prepare/guess/libsvm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Lines = std::vector<std::string>;

std::string FieldsOf(const Lines& lines) {
  const auto found = FindLibsvm({{"f"}, {lines}});
  return found.ok() ? LibsvmSchema(*found, "") : found.status().message();
}

TEST(LibsvmTest, NearlyAllLinesAreALabelAndWordsWithColons) {
  EXPECT_TRUE(IsLibsvm({"1 3:1 5:0.5", "-1\t2:1"}));
  EXPECT_TRUE(IsLibsvm({"1 3:1 5:0.5  # a comment", "0", "+1 2:1"}));
  EXPECT_TRUE(IsLibsvm({"2.5 qid:7 1:0.5", "1 qid:7 1:1"}));
  EXPECT_TRUE(IsLibsvm({"1 0:3:1 1:7:0.5", "0 0:2:1"}));
  EXPECT_FALSE(IsLibsvm({"1 3:1", "1 a:b"}));
  EXPECT_FALSE(IsLibsvm({"1", "0"}));
  EXPECT_FALSE(IsLibsvm({"2014-10-21 05:00:00", "2014-10-22 06:00:00"}));
}

TEST(LibsvmTest, NumbersGoByTheirIndex) {
  EXPECT_THAT(FieldsOf({"1 1:.5 2:3", "0 1:2 2:7"}), HasSubstr("names: \"f1..f2\" type: NUMERIC"));
  EXPECT_THAT(FieldsOf({"1 0:.5 1:3", "0 0:2 1:7"}),
              AllOf(HasSubstr("zero_based: true\n"), HasSubstr("\"f0..f1\" type: NUMERIC")));
  EXPECT_THAT(FieldsOf({"1 1:.5 3:3", "0 7:1"}), HasSubstr("names: \"f1..f7\" type: NUMERIC"));
  EXPECT_THAT(FieldsOf({"1 1:.5 4097:3", "0 7:1"}),
              HasSubstr("# check features: numbers at indices up to 4097 are left out; the indices "
                        "alone are read\nfields { name: \"features\" type: MULTI_HOT max_length: 2 "
                        "any_value: true }\n"));
  EXPECT_THAT(FieldsOf({"1 1:.5 4097:.5", "0 7:1"}), Not(HasSubstr("# check")));
}

TEST(LibsvmTest, LabelsAndQueriesGetFields) {
  EXPECT_THAT(FieldsOf({"1 1:.5", "2 1:3"}),
              HasSubstr("\nfields { name: \"label\" type: LABEL at_least: 2 }\n"));
  EXPECT_THAT(FieldsOf({"0 qid:7 1:.5 # a:1", "4 qid:7 1:1", "0 qid:8 2:3", "1 qid:8 2:3"}),
              HasSubstr("by: HASH hash_field: \"query\" }\nfields { name: \"query\" type: GROUP }\n"
                        "# check label: numbers from 4 on count as 1\n"
                        "fields { name: \"label\" type: LABEL at_least: 4 }\n"
                        "fields { names: \"f1..f2\" type: NUMERIC }\n"));
}

TEST(LibsvmTest, ZeroBesideMinusOneIsDoubted) {
  EXPECT_THAT(FieldsOf({"1 1:.5", "0 1:3", "-1 1:2"}),
              HasSubstr("\n# check label: has 0, 1 and -1; -1 counts as 0\n"
                        "fields { name: \"label\" type: LABEL }\n"));
  EXPECT_THAT(FieldsOf({"+1 1:.5", "-1 1:3", "1 1:2"}), Not(HasSubstr("# check")));
}

TEST(LibsvmTest, TriplesAreFieldsOfLibffm) {
  EXPECT_EQ(FieldsOf({"1 0:3:1 1:7:0.5 2:4:1 2:5:1 4:9:.5", "0 0:2:1 1:7:4 2:6:1 4:8:1"}),
            "layout: LIBFFM\nzero_based: true\n"
            "split { train: 0.8 validation: 0.1 test: 0.1 by: HASH }\n"
            "fields { name: \"f0\" type: CATEGORICAL }\nfields { name: \"f1\" type: NUMERIC }\n"
            "fields { name: \"f2\" type: MULTI_HOT max_length: 2 }\n"
            "fields { name: \"f3\" type: IGNORED }\n# check f4: numbers other than 1 are left out; "
            "the indices alone are read\n"
            "fields { name: \"f4\" type: CATEGORICAL any_value: true }\n");
  // Rows that are divided by their length, as xLearn's samples.
  EXPECT_THAT(FieldsOf({"1 1:3:0.5 2:7:0.5", "0 1:2:.7 2:4:.7"}),
              HasSubstr("\nfields { names: \"f1..f2\" type: CATEGORICAL any_value: true }\n"));
}

TEST(LibsvmTest, IndicesOfOnesAreCategoriesOrABag) {
  EXPECT_THAT(FieldsOf({"1 1:1 5:1", "0 2:1 6:1"}), HasSubstr("\"f1..f2\" type: CATEGORICAL"));
  EXPECT_THAT(FieldsOf({"1 1:1 5:1", "0 5:1 6:1"}), HasSubstr("type: MULTI_HOT max_length: 2"));
  EXPECT_THAT(FieldsOf({"1 1:1 2:1", "0 7:1", "0"}), HasSubstr("type: MULTI_HOT max_length: 2"));
}

TEST(LibsvmTest, RefusesWhatNoSchemaReads) {
  EXPECT_THAT(FieldsOf({"1 price:0.5"}), HasSubstr("f: found 'price:0.5'"));
  EXPECT_THAT(FieldsOf({"1 1:1 1:2:1"}), HasSubstr("f: pairs index:value stand beside triples"));
  EXPECT_THAT(FieldsOf({"1 5000:2:1"}), HasSubstr("f: found field 5000 of libffm; expected 4096"));
}

}  // namespace
}  // namespace elastor
