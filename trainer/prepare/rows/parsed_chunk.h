#ifndef ELASTOR_TRAINER_PREPARE_ROWS_PARSED_CHUNK_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_PARSED_CHUNK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/arrow/text_table.h"
#include "trainer/prepare/rows/drawn_items.h"

namespace elastor {

// A line, or a record of several, that is not a row.
struct BadRow {
  int64_t line = 0;  // its first, within its chunk, from 0
  std::string what;  // column, found, expected
};

// A column of a chunk's rows, `stride` apart.
template <typename T>
struct ChunkColumn {
  const T* values = nullptr;
  int64_t stride = 0;
};

// The values of a CATEGORICAL field.
struct SingleColumn {
  ChunkColumn<uint64_t> ids;          // as in ParsedChunk::ids
  const TextColumn* texts = nullptr;  // in their place, for a VOCABULARY field: a table's column
};

// Whole records, mostly a line each, and the rows made of them. Until ids are assigned, a value of
// a VOCABULARY field stands in `ids` and `bags` as the place of its text: PackText / TextOf.
struct ParsedChunk {
  std::string text;                  // fewer than 2^31 bytes, ending in a line feed
  TextTable table;                   // if it has rows, their values lie in the text, not lines
  std::string made;                  // values that stand in no column: hours, buckets
  std::vector<const char*> outside;  // where values begin that stand in side tables and histories
  // [records][histories], given to Parse: values of earlier rows of the user, as sized texts.
  std::vector<std::string_view> histories;
  std::string history_texts;  // where they may lie
  // [records], given to Parse: the negatives of each record's row. Empty: none are drawn.
  std::vector<RecordDraws> draws;
  std::vector<uint32_t> drawn;  // their items
  const DrawnItems* items = nullptr;
  int64_t lines = 0;    // of text
  int64_t records = 0;  // good and bad ones; a good one makes one row, and its negatives
  int64_t rows = 0;
  std::vector<float> labels;  // [rows][labels]; NaN = missing, where there are several
  // [rows][fields of the type], but for fields whose columns were taken whole.
  std::vector<double> numeric;  // transformed but not standardised
  std::vector<uint64_t> ids;
  // [fields of the type]: where the values of all rows are, taken whole or not.
  std::vector<ChunkColumn<double>> numeric_columns;
  std::vector<SingleColumn> single_columns;
  std::vector<std::vector<double>> whole_numeric;
  std::vector<std::vector<uint64_t>> whole_ids;
  std::vector<uint32_t> bag_ends;  // [rows][MULTI_HOT and SEQUENCE fields]: ends in `bags`
  std::vector<uint64_t> bags;
  std::vector<int64_t> cut_values;    // [MULTI_HOT and SEQUENCE fields]: not kept, for max_length
  std::vector<int64_t> missing_keys;  // [lookups]: rows whose key the side table lacks
  // [rows], or empty when the schema has no such field, or does not split by HASH.
  std::vector<float> weights;
  std::vector<uint64_t> groups;  // XXH3-64 of the text
  std::vector<int64_t> times;    // seconds since 1970
  // [rows]: Split, where draws tell it.
  std::vector<uint8_t> splits;
  // XXH3-64 of the text of split.hash_field, or of the record without its ending.
  std::vector<uint64_t> split_hashes;
  // [rows][columns that histories or negatives depend on], where the parser collects them, as
  // PackText.
  std::vector<uint64_t> events;
  std::vector<uint32_t> record_of_row;  // empty: each row's own
  int64_t bad_rows = 0;
  std::vector<uint32_t> bad_records;  // numbers among the records
  std::vector<BadRow> bad;            // the first few

  int64_t RecordOf(int64_t row) const { return record_of_row.empty() ? row : record_of_row[row]; }

  // `offset` counts on from the end of `text` into `made`. REQUIRES: size < 2^31.
  static uint64_t PackText(uint64_t offset, uint64_t size) { return offset << 32 | size; }
  // The same for a value that begins at outside[number].
  static uint64_t PackOutside(uint64_t number, uint64_t size) {
    return PackText(number, size | kOutside);
  }
  std::string_view TextOf(uint64_t packed) const {
    const uint64_t offset = packed >> 32, size = packed & (kOutside - 1);
    if ((packed & kOutside) != 0) return {outside[offset], size};
    if (offset < text.size()) return {text.data() + offset, size};
    return {made.data() + (offset - text.size()), size};
  }

 private:
  static constexpr uint64_t kOutside = uint64_t{1} << 31;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_PARSED_CHUNK_H_
