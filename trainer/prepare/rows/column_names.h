#ifndef ELASTOR_TRAINER_PREPARE_ROWS_COLUMN_NAMES_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_COLUMN_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/rows/side_table.h"

namespace elastor {

// The columns that a header names. User error when a quote is left open.
StatusOr<std::vector<std::string>> ColumnNames(const Schema& schema, std::string_view header,
                                               const std::string& source);

// What a DELIMITED schema reads of a row.
struct RowColumns {
  std::vector<int64_t> of_fields;  // from 0; cell i of the side tables, then histories: -2 - i
  std::vector<int64_t> of_keys;    // of the side tables
  // What histories depend on, for each: `by`, `where`, `of`, then each `of` of `beside`. -1: none.
  std::vector<int64_t> of_events;
  std::vector<int64_t> of_draws;  // what negatives depend on: `user`, `of`, then all of `beside`
};

// Whether rows are in the histories of later ones. Those to predict are not: they have no labels,
// and nobody knows that they took place.
enum class Events { kThere, kNone };

// Finds columns by name in `names` when schema.header(), else by order. User error naming `source`,
// field and column when a column is not there or not the only one.
StatusOr<RowColumns> ColumnsOfRow(const Schema& schema, const SideTables& tables,
                                  const std::vector<std::string>& names, const std::string& source,
                                  Events events);

// The skip_lines of a schema for tables, whose header stands in no line.
inline constexpr int64_t kNoLines = -1;

// "in.csv:1: ", where the header of `source` stands; "in.parquet: " for a table.
std::string HeaderPlace(const Schema& schema, const std::string& source);

std::string DelimiterOf(const Schema& schema);
std::string DelimiterText(std::string_view delimiter);  // "a tab", "','"

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_COLUMN_NAMES_H_
