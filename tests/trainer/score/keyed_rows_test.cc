#include "trainer/score/keyed_rows.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "core/base/random.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

constexpr int64_t kWidth = 3;

// Values that tell the key.
void Fill(int64_t key, float* row) {
  for (int64_t i = 0; i < kWidth; ++i) row[i] = static_cast<float>(key % 1000 + i);
}
bool IsRowOf(int64_t key, const float* row) {
  float want[kWidth];
  Fill(key, want);
  return std::equal(want, want + kWidth, row);
}

int64_t KeyOf(uint64_t i) { return static_cast<int64_t>(i * 0x9e3779b97f4a7c15); }

TEST(KeyedRows, HasTheRowsOfAMap) {
  KeyedRows rows(kWidth);
  std::map<int64_t, float*> expected;
  for (uint32_t i = 0; i < 60000; ++i) {
    const uint32_t word = Philox(7, {i, 0, 0, 0})[0];
    const int64_t key = KeyOf(word % 5000 + i / 4);  // drifts
    if (word >> 16 & 1) {
      rows.Remove(key);
      expected.erase(key);
    } else {
      float* const row = rows.Claim(key);
      const auto [at, is_new] = expected.emplace(key, row);
      EXPECT_EQ(at->second, row) << "an address that moved";
      Fill(key, row);
    }
  }
  ASSERT_EQ(rows.size(), static_cast<int64_t>(expected.size()));
  std::vector<int64_t> keys;
  for (uint64_t i = 0; i < 20000; ++i) keys.push_back(KeyOf(i));
  std::vector<float*> found(keys.size());
  rows.Find(keys, found.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto want = expected.find(keys[i]);
    ASSERT_EQ(found[i], want == expected.end() ? nullptr : want->second) << i;
    ASSERT_TRUE(found[i] == nullptr || IsRowOf(keys[i], found[i])) << i;
  }
  std::vector<int64_t> listed = rows.Keys(), own;
  for (const auto& [key, row] : expected) own.push_back(key);
  std::ranges::sort(listed);
  EXPECT_EQ(listed, own);
}

// Threads find keys that nobody changes in older copies, while the newest one grows, and gives the
// rows of removed keys to others.
TEST(KeyedRows, OlderCopiesFindWhatIsNotChanged) {
  constexpr uint64_t kStable = 3000, kRounds = 60, kBorn = 2000;
  std::vector<KeyedRows> copies(1, KeyedRows(kWidth));
  std::vector<int64_t> stable;
  for (uint64_t i = 0; i < kStable; ++i) stable.push_back(KeyOf(i));
  for (const int64_t key : stable) Fill(key, copies[0].Claim(key));
  copies.reserve(kRounds + 1);
  std::atomic<size_t> newest = 0;
  std::atomic<bool> stop = false;
  std::atomic<int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float*> rows(kStable);
      while (!stop) {
        copies[t == 0 ? 0 : newest.load()].Find(stable, rows.data());
        for (uint64_t i = 0; i < kStable; ++i) {
          if (rows[i] == nullptr || !IsRowOf(stable[i], rows[i])) ++wrong;
        }
      }
    });
  }
  for (uint64_t round = 0; round < kRounds; ++round) {
    copies.push_back(copies.back());
    KeyedRows& next = copies.back();
    next.Reserve(kBorn, kBorn);
    for (uint64_t i = 0; i < kBorn; ++i) {
      if (round > 0 && i % 3 > 0) next.Remove(KeyOf(kStable + (round - 1) * kBorn + i));
      const int64_t key = KeyOf(kStable + round * kBorn + i);
      Fill(key, next.Claim(key));
    }
    newest = round + 1;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(copies.back().size(), static_cast<int64_t>(kStable + kBorn + (kRounds - 1) * 667));
}

}  // namespace
}  // namespace elastor
