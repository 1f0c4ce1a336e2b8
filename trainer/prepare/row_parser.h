#ifndef ELASTOR_TRAINER_PREPARE_ROW_PARSER_H_
#define ELASTOR_TRAINER_PREPARE_ROW_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"

namespace elastor {

// A line that is not a row.
struct BadRow {
  int64_t line = 0;  // within its chunk, from 0
  std::string what;  // column, found, expected
};

// Whole lines and the rows made of them. Until ids are assigned, a value of a VOCABULARY field
// stands in `ids` and `bags` as its place in the text: PackText / TextOf.
struct ParsedChunk {
  std::string text;  // fewer than 2^31 bytes, ending in a line feed
  int64_t lines = 0;
  int64_t rows = 0;
  std::vector<float> labels;
  std::vector<double> numeric;     // [rows][numeric fields], transformed but not standardised
  std::vector<uint64_t> ids;       // [rows][CATEGORICAL fields]
  std::vector<uint32_t> bag_ends;  // [rows][MULTI_HOT fields]: ends in `bags`
  std::vector<uint64_t> bags;
  int64_t bad_rows = 0;
  std::vector<BadRow> bad;  // the first few

  static uint64_t PackText(uint64_t offset, uint64_t size) { return offset << 32 | size; }
  std::string_view TextOf(uint64_t packed) const {
    return {text.data() + (packed >> 32), packed & 0xffffffff};
  }
};

// Turns text into rows by a schema of layout CRITEO_TSV or LIBSVM. Whether a line is a good row
// depends on the line and the schema alone. Thread-safe.
class RowParser {
 public:
  explicit RowParser(const Schema& schema);

  int64_t numeric_fields() const { return numeric_; }
  int64_t single_fields() const { return single_; }
  int64_t multi_fields() const { return multi_; }

  // Replaces everything but chunk->text.
  void Parse(ParsedChunk* chunk) const;

 private:
  struct FieldPlan {
    std::string name;
    Field::Type type;
    Field::Transform transform;
    Field::Encoding encoding;
    uint64_t buckets;
    int64_t offset;
    int64_t max_length;
    char separator;
  };
  class RowBuilder;
  void ParseTsv(ParsedChunk* chunk) const;
  void ParseTsvLine(const uint32_t* ends, int64_t count, uint32_t begin, RowBuilder* row) const;
  void ParseLibsvm(ParsedChunk* chunk) const;
  void ParseLibsvmLine(std::string_view line, RowBuilder* row) const;

  const Schema::Layout layout_;
  std::vector<FieldPlan> fields_;
  int64_t numeric_ = 0;
  int64_t single_ = 0;
  int64_t multi_ = 0;
};

// x > 2: floor(ln(x)^2), else x.
double Log2Transform(double x);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROW_PARSER_H_
