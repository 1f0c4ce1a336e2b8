#ifndef ELASTOR_TRAINER_PREPARE_ROW_PARSER_H_
#define ELASTOR_TRAINER_PREPARE_ROW_PARSER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"

namespace elastor {

// A line that is not a row.
struct BadRow {
  int64_t line = 0;  // within its chunk, from 0
  std::string what;  // column, found, expected
};

// Whole lines and the rows made of them. Until ids are assigned, a value of a VOCABULARY field
// stands in `ids` and `bags` as the place of its text: PackText / TextOf.
struct ParsedChunk {
  std::string text;  // fewer than 2^31 bytes, ending in a line feed
  std::string made;  // values that stand in no column: hours, buckets
  int64_t lines = 0;
  int64_t rows = 0;
  std::vector<float> labels;
  std::vector<double> numeric;     // [rows][NUMERIC fields], transformed but not standardised
  std::vector<uint64_t> ids;       // [rows][CATEGORICAL fields]
  std::vector<uint32_t> bag_ends;  // [rows][MULTI_HOT and SEQUENCE fields]: ends in `bags`
  std::vector<uint64_t> bags;
  // [rows], or empty when the schema has no such field, or does not split by HASH.
  std::vector<float> weights;
  std::vector<uint64_t> groups;  // XXH3-64 of the text
  std::vector<int64_t> times;    // seconds since 1970
  // XXH3-64 of the text of split.hash_field, or of the line without its ending.
  std::vector<uint64_t> split_hashes;
  int64_t bad_rows = 0;
  std::vector<BadRow> bad;  // the first few

  // `offset` counts on from the end of `text` into `made`.
  static uint64_t PackText(uint64_t offset, uint64_t size) { return offset << 32 | size; }
  std::string_view TextOf(uint64_t packed) const {
    const uint64_t offset = packed >> 32, size = packed & 0xffffffff;
    if (offset < text.size()) return {text.data() + offset, size};
    return {made.data() + (offset - text.size()), size};
  }
};

// Turns text into rows by a schema of layout DELIMITED or LIBSVM, as ReadSchemaFile returns it.
// Whether a line is a good row depends on the line, the header and the schema alone. Thread-safe.
class RowParser {
 public:
  // `header`: the first line of the first input when schema.header(), with or without its ending,
  // else unused; `source` names that input in errors. User error when a field's column is not in
  // the header or stands there twice.
  static StatusOr<std::unique_ptr<RowParser>> Create(const Schema& schema, std::string_view header,
                                                     const std::string& source);
  ~RowParser();

  int64_t numeric_fields() const { return numeric_; }
  int64_t single_fields() const { return single_; }  // CATEGORICAL
  int64_t multi_fields() const { return multi_; }    // MULTI_HOT and SEQUENCE

  // For the first line of every other input when schema.header(): it is no row, and must have the
  // columns that Create was given. User error naming `source` and the column.
  Status CheckHeader(std::string_view header, const std::string& source) const;

  // Replaces everything but chunk->text; there, "" within quotes becomes one quote in its place.
  void Parse(ParsedChunk* chunk) const;

 private:
  struct Plan;
  explicit RowParser(std::unique_ptr<Plan> plan);

  std::unique_ptr<const Plan> plan_;
  int64_t numeric_ = 0;
  int64_t single_ = 0;
  int64_t multi_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROW_PARSER_H_
