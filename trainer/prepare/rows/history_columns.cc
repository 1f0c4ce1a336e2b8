#include "trainer/prepare/rows/history_columns.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "trainer/prepare/rows/list_text.h"
#include "trainer/prepare/rows/row_builder.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {

int64_t LengthOf(const History& history) {
  return history.has_max_length() ? history.max_length() : int64_t{kDefaultMaxLength};
}

StatusOr<RowCondition> RowCondition::Parse(const std::string& text) {
  constexpr std::string_view kSigns = "=!<>";
  const auto wrong = [&text](const std::string& expected) {
    return UserError("where is " + Shown(text) + "; expected " + expected);
  };
  const std::string form = "a column, one of = != < <= > >=, and a constant: \"rating >= 4\"";
  const size_t begin = std::min(text.find_first_of(kSigns), text.size());
  const size_t end = std::min(text.find_first_not_of(kSigns, begin), text.size());
  RowCondition condition;
  condition.column_ = TrimBlanks(std::string_view(text).substr(0, begin));
  condition.comparison_ = text.substr(begin, end - begin);
  std::string_view constant = TrimBlanks(std::string_view(text).substr(end));
  constexpr std::string_view kComparisons[] = {"=", "!=", "<", "<=", ">", ">="};
  const bool known = std::ranges::count(kComparisons, condition.comparison_) > 0;
  const char quote = constant.empty() ? '\0' : constant.front();
  const bool quoted =
      (quote == '\'' || quote == '"') && constant.size() > 2 && constant.back() == quote;
  const bool one = quoted || constant.find_first_of(kSigns) == constant.npos;
  if (!known || condition.column_.empty() || constant.empty() || !one) return wrong(form);
  if (quoted) constant = constant.substr(1, constant.size() - 2);
  condition.constant_ = constant;
  double number;
  if (ParseNumber(constant, &number)) condition.number_ = number;
  const bool ordered = condition.comparison_[0] == '<' || condition.comparison_[0] == '>';
  if (ordered && !condition.number_) return wrong("a number after " + condition.comparison_);
  return condition;
}

bool RowCondition::Holds(std::string_view text) const {
  if (text.empty()) return false;
  double value;
  if (!number_ || !ParseNumber(text, &value)) {
    return comparison_ == "=" ? text == constant_ : comparison_ == "!=" && text != constant_;
  }
  const bool ordered = comparison_[0] == '<' || comparison_[0] == '>';
  // Beyond 2^53 different integers are one number.
  if (!ordered && std::abs(*number_) >= 0x1p53) return (text == constant_) == (comparison_ == "=");
  if (comparison_ == "=") return value == *number_;
  if (comparison_ == "!=") return value != *number_;
  const bool equal = comparison_.size() > 1 && value == *number_;
  return equal || (comparison_[0] == '<' ? value < *number_ : value > *number_);
}

std::vector<HistoryPlace> HistoryPlaces(const Schema& schema) {
  std::vector<HistoryPlace> places;
  for (int i = 0; i < schema.history_size(); ++i) {
    const History& history = schema.history(i);
    const int values = 1 + history.beside_size();
    places.push_back({i, 0, values, history.name()});
    for (int j = 0; j < history.beside_size(); ++j) {
      places.push_back({i, j + 1, values, history.beside(j).name(), history.beside(j).time_gap()});
    }
  }
  return places;
}

bool HistoriesRead(const Schema& schema, const std::string& column) {
  return std::ranges::any_of(schema.history(), [&](const History& history) {
    const auto where = RowCondition::Parse(history.where());
    return history.of() == column || history.by() == column ||
           (where.ok() && where->column() == column) ||
           std::ranges::any_of(history.beside(),
                               [&](const HistoryColumn& beside) { return beside.of() == column; });
  });
}

std::string HistoryName(const History& history) { return "history " + history.name() + ": "; }

}  // namespace elastor
