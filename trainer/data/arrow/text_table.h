#ifndef ELASTOR_TRAINER_DATA_ARROW_TEXT_TABLE_H_
#define ELASTOR_TRAINER_DATA_ARROW_TEXT_TABLE_H_

#include <cstdint>
#include <iterator>
#include <vector>

namespace elastor {

// A column of some rows, whose values lie one after another in a text that many columns share, or
// are numbers.
struct TextColumn {
  // Value v is [begins[v], begins[v + 1]) of the text; empty: missing. A list is a value of sized
  // texts (trainer/data/sized_text.h).
  std::vector<uint32_t> begins;
  std::vector<uint32_t> codes;  // row r has the value codes[r]; empty: the value r
  bool is_list = false;
  // By row, in place of text: the numbers that the texts would mean; NaN: missing. Empty: text.
  std::vector<double> numbers;

  uint32_t begin(int64_t row) const { return begins[ValueOf(row)]; }
  uint32_t end(int64_t row) const { return begins[ValueOf(row) + 1]; }

 private:
  int64_t ValueOf(int64_t row) const { return codes.empty() ? row : codes[row]; }
};

// Some rows of a table.
struct TextTable {
  int64_t rows = 0;
  std::vector<TextColumn> columns;

  int64_t number_bytes() const {
    int64_t bytes = 0;
    for (const TextColumn& column : columns) bytes += 8 * std::ssize(column.numbers);
    return bytes;
  }
  // Returns one row as a table of the same text. REQUIRES: no column has numbers.
  TextTable RowAt(int64_t row) const {
    TextTable one;
    one.rows = 1;
    for (const TextColumn& column : columns) {
      one.columns.push_back({{column.begin(row), column.end(row)}, {}, column.is_list, {}});
    }
    return one;
  }
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_TEXT_TABLE_H_
