#ifndef ELASTOR_TESTS_TRAINER_PREPARE_PREPARE_REFERENCE_H_
#define ELASTOR_TESTS_TRAINER_PREPARE_PREPARE_REFERENCE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace elastor {

// What `prepare` makes of rows, done in the plainest way.

// Ids of a vocabulary: by count descending then value, those seen min_count times.
inline std::map<std::string, int64_t> PlainRanks(const std::vector<std::string>& training,
                                                 int64_t min_count) {
  std::map<std::string, int64_t> counts;
  for (const std::string& value : training) ++counts[value];
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [value, count] : counts) {
    if (!value.empty() && count >= min_count) order.push_back({-count, value});
  }
  std::sort(order.begin(), order.end());
  std::map<std::string, int64_t> ids;
  for (size_t i = 0; i < order.size(); ++i) ids[order[i].second] = static_cast<int64_t>(i) + 1;
  return ids;
}

// Raw rows with a number, two words that share a vocabulary (one of them a bag), a hashed word and
// an integer.
struct RawRow {
  int label;
  int number;  // < 0: missing
  std::string word;
  std::vector<std::string> bag;
  std::string hashed;
  int integer;
};

// Row r of a fixed series: skewed words of 1 to 20 bytes, more of them with more rows.
inline RawRow RawRowAt(uint64_t r) {
  const auto draw = [r](uint64_t salt) {
    uint64_t x = (r + 1) * 0x9e3779b97f4a7c15 + salt * 0xbf58476d1ce4e5b9;
    x ^= x >> 31;
    x *= 0x94d049bb133111eb;
    return x ^ (x >> 29);
  };
  const auto word = [&](uint64_t salt) {
    const uint64_t limit = uint64_t{1} << (draw(salt) % 14);
    const uint64_t value = draw(salt + 100) % limit;
    return std::string(value % 15, static_cast<char>('a' + value % 3)) + std::to_string(value);
  };
  RawRow row;
  row.label = static_cast<int>(draw(1) % 4 == 0);
  row.number = static_cast<int>(draw(2) % 900) - 30;
  row.word = draw(3) % 9 == 0 ? "" : word(4);
  for (uint64_t i = 0; i < draw(5) % 4; ++i) row.bag.push_back(word(10 + i));
  row.hashed = word(20);
  row.integer = static_cast<int>(draw(6) % 300);
  return row;
}

constexpr char kRawSchema[] = R"(
    fields { name: "label" type: LABEL }
    fields { name: "number" type: NUMERIC transform: STANDARDIZE }
    fields { name: "word" type: CATEGORICAL min_count: 2 }
    fields { name: "bag" type: MULTI_HOT shares: "word" }
    fields { name: "hashed" type: CATEGORICAL encoding: HASH buckets: 1000 }
    fields { name: "integer" type: CATEGORICAL encoding: IDENTITY buckets: 400 offset: -7 }
    rows_per_block: 512 )";

inline std::string RawText(const RawRow& row) {
  std::string text = std::to_string(row.label) + "\t" +
                     (row.number < 0 ? "" : std::to_string(row.number)) + "\t" + row.word + "\t";
  for (size_t i = 0; i < row.bag.size(); ++i) text += (i > 0 ? "|" : "") + row.bag[i];
  return text + "\t" + row.hashed + "\t" + std::to_string(row.integer) + "\n";
}

inline std::string RawTexts(int64_t begin, int64_t end) {
  std::string text;
  for (int64_t row = begin; row < end; ++row) text += RawText(RawRowAt(row));
  return text;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_PREPARE_PREPARE_REFERENCE_H_
