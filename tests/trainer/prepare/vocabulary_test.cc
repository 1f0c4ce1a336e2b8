#include "trainer/prepare/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace elastor {
namespace {

using testing::ElementsAre;

TEST(VocabularyTest, NumbersByFirstOccurrence) {
  Vocabulary vocabulary;
  std::map<std::string, uint32_t> expected;
  for (int i = 0; i < 50000; ++i) {
    // Texts of 1 to 12 bytes: both ways to keep a value, and several sizes of the table.
    const std::string value = std::string(i % 8, 'x') + std::to_string(i * 7919 % 30011);
    const auto [entry, inserted] =
        expected.try_emplace(value, static_cast<uint32_t>(expected.size()));
    ASSERT_EQ(vocabulary.Add(value), entry->second) << value;
  }
  EXPECT_EQ(vocabulary.size(), static_cast<int64_t>(expected.size()));
  for (const auto& [value, number] : expected) EXPECT_EQ(vocabulary.value(number), value);
}

TEST(VocabularyTest, EmptyZeroBytesAndPrefixesDiffer) {
  Vocabulary vocabulary;
  const std::string zero(1, '\0');
  EXPECT_EQ(vocabulary.Add(""), 0u);
  EXPECT_EQ(vocabulary.Add(zero), 1u);
  EXPECT_EQ(vocabulary.Add("a"), 2u);
  EXPECT_EQ(vocabulary.Add("a" + zero), 3u);
  EXPECT_EQ(vocabulary.Add("12345678"), 4u);
  EXPECT_EQ(vocabulary.Add("123456789"), 5u);
  EXPECT_EQ(vocabulary.Add("a"), 2u);
}

TEST(VocabularyTest, RankByCountThenValue) {
  Vocabulary vocabulary;
  for (const char* value : {"d", "", "b", "rare", "c", "B", "none"}) vocabulary.Add(value);
  int64_t rows = 0;
  EXPECT_THAT(vocabulary.Rank({5, 100, 7, 1, 5, 5, 0}, 2, &rows), ElementsAre(4, 0, 1, 0, 3, 2, 0));
  EXPECT_EQ(rows, 5);
  EXPECT_THAT(vocabulary.Rank({5, 100, 7, 1, 5, 5, 0}, 0, &rows), ElementsAre(4, 0, 1, 5, 3, 2, 0));
  EXPECT_EQ(rows, 6);
}

}  // namespace
}  // namespace elastor
