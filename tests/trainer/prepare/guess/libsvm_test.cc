#include "trainer/prepare/guess/libsvm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastor {
namespace {

using testing::HasSubstr;

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

TEST(LibsvmTest, NumbersNeedTheIndexOfTheirPlace) {
  EXPECT_THAT(FieldsOf({"1 1:.5 2:3", "0 1:2 2:7"}), HasSubstr("names: \"f1..f2\" type: NUMERIC"));
  EXPECT_THAT(FieldsOf({"1 0:.5 1:3", "0 0:2 1:7"}), HasSubstr("zero_based: true\n"));
  EXPECT_THAT(FieldsOf({"1 1:.5 2:3", "0 1:2 3:7"}), HasSubstr("not all indices in every row"));
  EXPECT_THAT(FieldsOf({"1 1:.5 3:3", "0 1:2 3:7"}), HasSubstr("not all indices in every row"));
  EXPECT_THAT(FieldsOf({"1 1:.5 2:3", "0 7:1"}), HasSubstr("not all indices in every row"));
}

TEST(LibsvmTest, IndicesOfOnesAreCategoriesOrABag) {
  EXPECT_THAT(FieldsOf({"1 1:1 5:1", "0 2:1 6:1"}), HasSubstr("\"f1..f2\" type: CATEGORICAL"));
  EXPECT_THAT(FieldsOf({"1 1:1 5:1", "0 5:1 6:1"}), HasSubstr("type: MULTI_HOT max_length: 2"));
  EXPECT_THAT(FieldsOf({"1 1:1 2:1", "0 7:1", "0"}), HasSubstr("type: MULTI_HOT max_length: 2"));
}

TEST(LibsvmTest, RefusesWhatNoSchemaReads) {
  EXPECT_THAT(FieldsOf({"1 0:3:1 1:7:0.5"}), HasSubstr("f: found '0:3:1', a triple"));
  EXPECT_THAT(FieldsOf({"1 qid:7 1:1"}), HasSubstr("f: found 'qid:7'"));
  EXPECT_THAT(FieldsOf({"1 price:0.5"}), HasSubstr("f: found 'price:0.5'"));
  EXPECT_THAT(FieldsOf({"1 1:1", "2 1:1"}), HasSubstr("f: found label '2' in libsvm's layout"));
}

}  // namespace
}  // namespace elastor
