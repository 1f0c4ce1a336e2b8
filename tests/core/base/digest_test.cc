#include "core/base/digest.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace elastor {
namespace {

struct Record {
  std::string name;
  uint64_t row;
  std::vector<float> bytes;
};

std::vector<Record> ManyRecords() {
  std::vector<Record> records;
  for (const char* name : {"embedding/a", "embedding/b"}) {
    for (uint64_t row = 0; row < 200; ++row) {
      records.push_back({name, row, std::vector<float>(row % 40, 1.5f * static_cast<float>(row))});
    }
  }
  return records;
}

void AddRecord(const Record& record, Digest* digest) {
  digest->Add(record.name, record.row, record.bytes.data(), record.bytes.size() * sizeof(float));
}

Digest DigestOf(const std::vector<Record>& records) {
  Digest digest;
  for (const Record& record : records) AddRecord(record, &digest);
  return digest;
}

TEST(DigestTest, EmptyIsZero) { EXPECT_EQ(Digest().Hex(), std::string(32, '0')); }

TEST(DigestTest, OneRecordIsItsHash) {
  const std::string bytes = "some bytes";
  Digest digest;
  digest.Add("name", 0, bytes.data(), bytes.size());
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(bytes.data(), bytes.size(), Digest::NameSeed("name"));
  char expected[33];
  std::snprintf(expected, sizeof(expected), "%016lx%016lx", hash.high64, hash.low64);
  EXPECT_EQ(digest.Hex(), expected);
}

TEST(DigestTest, DoesNotDependOnOrder) {
  std::vector<Record> records = ManyRecords();
  const Digest expected = DigestOf(records);
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    std::shuffle(records.begin(), records.end(), random);
    EXPECT_EQ(DigestOf(records), expected);
  }
}

TEST(DigestTest, DependsOnNameRowAndEveryBit) {
  std::vector<Record> records = ManyRecords();
  const Digest original = DigestOf(records);
  records[57].name = "embedding/c";
  EXPECT_NE(DigestOf(records), original);
  records = ManyRecords();
  records[57].row = 1000;
  EXPECT_NE(DigestOf(records), original);
  records = ManyRecords();
  records[57].bytes[3] = -records[57].bytes[3];
  EXPECT_NE(DigestOf(records), original);
  records = ManyRecords();
  std::swap(records[57].bytes, records[58].bytes);
  EXPECT_NE(DigestOf(records), original);
}

TEST(DigestTest, HashedNameGivesTheSame) {
  Digest by_name, by_seed;
  by_name.Add("tensor", 3, "abc", 3);
  by_seed.AddHashed(Digest::NameSeed("tensor"), 3, "abc", 3);
  EXPECT_EQ(by_name, by_seed);
}

TEST(DigestTest, PartsMergedOrReducedAsWordsGiveTheWhole) {
  const std::vector<Record> records = ManyRecords();
  constexpr int kParts = 7;
  Digest parts[kParts];
  for (size_t i = 0; i < records.size(); ++i) AddRecord(records[i], &parts[i % kParts]);

  Digest merged;
  std::array<int64_t, Digest::kWords> words{};
  for (const Digest& part : parts) {
    merged.Merge(part);
    const auto part_words = part.ToWords();
    for (int i = 0; i < Digest::kWords; ++i) words[i] += part_words[i];
  }
  EXPECT_EQ(merged, DigestOf(records));
  EXPECT_EQ(Digest::FromWords(words), DigestOf(records));
}

}  // namespace
}  // namespace elastor
