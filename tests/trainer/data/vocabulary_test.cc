#include "trainer/data/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace elastor {
namespace {

using testing::ElementsAre;

std::string TextOf(const Vocabulary& vocabulary, const SortedValue& value) {
  if (value.length > Vocabulary::kShort) return std::string(vocabulary.LongValue(value));
  std::string text;
  for (uint32_t i = 0; i < value.length; ++i)
    text += static_cast<char>(value.prefix >> (56 - 8 * i));
  return text;
}

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
  for (const auto& [value, number] : expected) ASSERT_EQ(vocabulary.Find(value), number);
  for (const char* value : {"", "x", "xxxxxxxxxxxxx", "nobody has this"}) {
    EXPECT_EQ(vocabulary.Find(value), -1) << value;
  }
  vocabulary.Sort();
  ASSERT_EQ(vocabulary.sorted().size(), expected.size());
  auto next = expected.begin();
  for (const SortedValue& value : vocabulary.sorted()) {
    EXPECT_EQ(TextOf(vocabulary, value), next->first);
    EXPECT_EQ(value.number, next->second);
    ++next;
  }
}

TEST(VocabularyTest, EmptyZeroBytesAndPrefixesDiffer) {
  Vocabulary vocabulary;
  const std::string zero(1, '\0');
  const std::vector<std::string> values = {"",
                                           zero,
                                           "a",
                                           "a" + zero,
                                           "12345678",
                                           "123456789",
                                           "12345678" + zero,
                                           "a" + std::string(9, '\0')};
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(vocabulary.Add(values[i]), i);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(vocabulary.Add(values[i]), i);
  vocabulary.Sort();
  std::vector<std::string> sorted;
  for (const SortedValue& value : vocabulary.sorted()) sorted.push_back(TextOf(vocabulary, value));
  EXPECT_THAT(sorted, ElementsAre("", zero, "12345678", "12345678" + zero, "123456789", "a",
                                  "a" + zero, "a" + std::string(9, '\0')));
}

TEST(VocabularyTest, IntegersSortAsNumbers) {
  Vocabulary vocabulary;
  std::vector<uint64_t> expected;
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t value = i * i * 0x9e3779b97f4a7c15 >> (i % 60);
    const int64_t before = vocabulary.size();
    if (vocabulary.AddInteger(value) == before) expected.push_back(value);
  }
  std::sort(expected.begin(), expected.end());
  vocabulary.Sort();
  ASSERT_EQ(vocabulary.sorted().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(vocabulary.sorted()[i].prefix, expected[i]);
  }
}

TEST(VocabularyTest, BytesGrowWithTheTableAndForeseeItsGrowth) {
  Vocabulary vocabulary;
  int64_t most = vocabulary.bytes();
  for (uint64_t i = 0; i < 100000; ++i) {
    const int64_t before = vocabulary.bytes();
    vocabulary.AddInteger(i);
    // No more than was said before the growth: the old and the new table.
    EXPECT_LE(vocabulary.bytes(), std::max(most, 3 * before));
    most = std::max(most, vocabulary.bytes());
  }
  EXPECT_GE(most, 100000 * 2 * 16);
}

}  // namespace
}  // namespace elastor
