#ifndef ELASTOR_TRAINER_DATA_ARROW_TEXT_TABLE_H_
#define ELASTOR_TRAINER_DATA_ARROW_TEXT_TABLE_H_

#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// Values that rows refer to by their places. Value 0 is the missing one.
struct TextDictionary {
  std::string text;
  std::vector<uint32_t> begins;  // value v is [begins[v], begins[v + 1]) of the text

  int64_t size() const { return std::ssize(begins) - 1; }
  std::string_view Value(uint32_t v) const {
    return {text.data() + begins[v], begins[v + 1] - begins[v]};
  }
};

// How a column of a table may be given. Where it cannot be, it is given as text.
enum class ColumnForm { kText, kNumbers, kIntegers };

// A column of some rows: texts, or numbers in their place.
struct TextColumn {
  // Row r has [begins[r], begins[r + 1]) of a text that many columns share; empty: missing. A list
  // is a row's sized texts (trainer/data/sized_text.h).
  std::vector<uint32_t> begins;
  bool is_list = false;
  // Not null: row r has the value codes[r]. Chunks of a group share it.
  std::shared_ptr<const TextDictionary> dictionary;
  std::vector<uint32_t> codes;
  // By row: the numbers that the texts would mean; NaN: missing.
  std::vector<double> numbers;
  // By row: the integers whose decimal texts the rows have; kNone: missing.
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> integers;

  // REQUIRES: the column is given as text.
  std::string_view Text(int64_t row, std::string_view text) const {
    if (dictionary != nullptr) return dictionary->Value(codes[row]);
    return text.substr(begins[row], begins[row + 1] - begins[row]);
  }
};

// Some rows of a table.
struct TextTable {
  int64_t rows = 0;
  std::vector<TextColumn> columns;

  // Returns the bytes of values that stand in no text.
  int64_t number_bytes() const {
    int64_t bytes = 0;
    for (const TextColumn& column : columns) {
      bytes += 8 * (std::ssize(column.numbers) + std::ssize(column.integers));
      bytes += 4 * std::ssize(column.codes);
    }
    return bytes;
  }
  // Returns one row as a table of the same text.
  TextTable RowAt(int64_t row) const {
    TextTable one;
    one.rows = 1;
    for (const TextColumn& column : columns) {
      TextColumn& cell = one.columns.emplace_back();
      cell.is_list = column.is_list;
      cell.dictionary = column.dictionary;
      const auto copy = [row](const auto& values, auto* cells, int64_t count) {
        if (!values.empty()) cells->assign(values.begin() + row, values.begin() + row + count);
      };
      copy(column.begins, &cell.begins, 2);
      copy(column.codes, &cell.codes, 1);
      copy(column.numbers, &cell.numbers, 1);
      copy(column.integers, &cell.integers, 1);
    }
    return one;
  }
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_TEXT_TABLE_H_
