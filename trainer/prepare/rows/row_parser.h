#ifndef ELASTOR_TRAINER_PREPARE_ROWS_ROW_PARSER_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_ROW_PARSER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/rows/parsed_chunk.h"
#include "trainer/prepare/rows/side_table.h"

namespace elastor {

// Whether every row must have its label. Where it need not, a missing one is not-a-number.
enum class Labels { kRequired, kOptional };

// Whether fields read the histories that a chunk has, or these fields are left out and a chunk gets
// what histories or negatives depend on.
enum class Collect { kNothing, kHistories, kNegatives };

// Whether a chunk of a table gets rows alone, or may have columns that are taken whole.
enum class Taking { kRows, kColumns };

// Turns text, or tables by SchemaOfTables, into rows by a schema of layout DELIMITED, LIBSVM or
// LIBFFM, as ReadSchemaFile returns it. Whether a line is a good row depends on the line, the
// header and the schema alone. Thread-safe.
class RowParser {
 public:
  // `header`: the first line of the first input when schema.header(), with or without its ending,
  // else unused; `source` names that input in errors; `tables`: those of the schema's lookups,
  // which must outlive the parser and what it parses. User error when a field's column is not in
  // the header or stands there twice.
  static StatusOr<std::unique_ptr<RowParser>> Create(const Schema& schema, std::string_view header,
                                                     const std::string& source,
                                                     Labels labels = Labels::kRequired,
                                                     const SideTables& tables = {},
                                                     Collect collect = Collect::kNothing);
  ~RowParser();

  // Texts that mean a missing value.
  const std::vector<std::string>& nulls() const;
  int64_t numeric_fields() const { return numeric_; }
  int64_t single_fields() const { return single_; }  // CATEGORICAL
  int64_t multi_fields() const { return multi_; }    // MULTI_HOT and SEQUENCE

  // For the first line of every other input when schema.header(): it is no row, and must have the
  // columns that Create was given. User error naming `source` and the column.
  Status CheckHeader(std::string_view header, const std::string& source) const;

  // Replaces everything but chunk->text, chunk->table and what is given to Parse. In the text ""
  // within quotes becomes one quote in its place. Texts of columns that are taken whole may be
  // among nulls().
  void Parse(ParsedChunk* chunk, Taking taking = Taking::kRows) const;

 private:
  struct Plan;
  explicit RowParser(std::unique_ptr<Plan> plan);

  std::unique_ptr<const Plan> plan_;
  int64_t numeric_ = 0;
  int64_t single_ = 0;
  int64_t multi_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_ROW_PARSER_H_
