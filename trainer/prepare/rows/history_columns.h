#ifndef ELASTOR_TRAINER_PREPARE_ROWS_HISTORY_COLUMNS_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_HISTORY_COLUMNS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"

namespace elastor {

inline constexpr int64_t kMostHistoryLength = 1 << 16;

int64_t LengthOf(const History& history);  // max_length, or what it is when left out

// The `where` of a history: which rows are in it.
class RowCondition {
 public:
  // User error when `text` is no column, comparison and constant, or compares the order of texts.
  static StatusOr<RowCondition> Parse(const std::string& text);

  const std::string& column() const { return column_; }
  // Whether the column's text meets it; a missing one does not. Numbers are compared as numbers, so
  // 4.0 = 4.
  bool Holds(std::string_view text) const;

 private:
  std::string column_;
  std::string comparison_;
  std::string constant_;
  std::optional<double> number_;  // the constant, if it is one
};

// A column that a history makes.
struct HistoryPlace {
  int history = 0;     // of the schema
  int place = 0;       // of its value among those of one row
  int values = 1;      // of one row
  std::string column;  // its name
  bool time_gap = false;
};

// The columns that all histories of the schema make, in their order.
std::vector<HistoryPlace> HistoryPlaces(const Schema& schema);

// Whether a history of the schema has values of a column of the rows, or depends on them.
bool HistoriesRead(const Schema& schema, const std::string& column);

// Returns "history hist_item: ", with which errors about it begin.
std::string HistoryName(const History& history);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_HISTORY_COLUMNS_H_
