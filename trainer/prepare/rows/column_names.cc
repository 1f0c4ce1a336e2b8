#include "trainer/prepare/rows/column_names.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/text.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/record_scanner.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

std::string_view WithoutEnding(std::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  return line;
}

// A few names, enough to see what was read.
std::string FirstNames(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + Shown(names[i]);
  }
  return text + (names.size() > kShown ? ", ..." : "");
}

// What may be the reason when a header is a single column.
std::string DelimiterHint(const Schema& schema, size_t columns) {
  if (columns > 1 || schema.skip_lines() == kNoLines) return "";
  return "; the schema's delimiter is " + DelimiterText(DelimiterOf(schema));
}

}  // namespace

std::string HeaderPlace(const Schema& schema, const std::string& source) {
  if (schema.skip_lines() == kNoLines) return source + ": ";
  return StrCat(source, ":", schema.skip_lines() + 1, ": ");
}

std::string DelimiterOf(const Schema& schema) {
  return schema.delimiter().empty() ? "\t" : schema.delimiter();
}

std::string DelimiterText(std::string_view delimiter) {
  return delimiter == "\t" ? "a tab" : Shown(delimiter);
}

StatusOr<std::vector<std::string>> ColumnNames(const Schema& schema, std::string_view header,
                                               const std::string& source) {
  const std::string line(WithoutEnding(header));
  const std::string delimiter = DelimiterOf(schema);
  std::vector<std::string> names;
  for (size_t at = 0; at <= line.size();) {
    if (schema.quoted() && at < line.size() && line[at] == '"') {
      bool doubled = false;
      const size_t close = ClosingQuote(line, at, &doubled);
      const bool closed = close != line.npos && (close + 1 == line.size() ||
                                                 line.substr(close + 1).starts_with(delimiter));
      if (!closed) {
        return UserError(StrCat(HeaderPlace(schema, source), "column ", names.size() + 1,
                                " of the header: the quote is not closed"));
      }
      std::string& name = names.emplace_back(line, at + 1, close - at - 1);
      name.resize(Unquote(name));
      at = close + 1 + delimiter.size();
      continue;
    }
    const size_t end = std::min(line.find(delimiter, at), line.size());
    names.push_back(line.substr(at, end - at));
    at = end + delimiter.size();
  }
  return names;
}

StatusOr<RowColumns> ColumnsOfRow(const Schema& schema, const SideTables& tables,
                                  const std::vector<std::string>& names, const std::string& source,
                                  Events events) {
  const std::string place = schema.header() ? HeaderPlace(schema, source) : source + ": ";
  std::map<std::string, std::vector<int64_t>> places;
  for (size_t i = 0; i < names.size(); ++i) places[names[i]].push_back(static_cast<int64_t>(i));
  int64_t cell = kFirstCell;
  for (const SideTable& table : tables) {
    for (const std::string& column : table.columns()) {
      if (!places[column].empty()) {
        return UserError(place + "column " + Shown(column) + " is also one of lookup " +
                         table.file() + "; expected no such column in the rows, or none there");
      }
      places[column] = {cell--};
    }
  }
  const int64_t first_history = cell;
  for (const HistoryPlace& place_of : HistoryPlaces(schema)) {
    if (!places[place_of.column].empty()) {
      return UserError(place + "column " + Shown(place_of.column) + " is also made by " +
                       HistoryName(schema.history(place_of.history)) +
                       "expected another name there");
    }
    places[place_of.column] = {cell--};
  }
  // Returns the only column of a name; `what` asks for it.
  const auto find = [&](const std::string& what, const std::string& column) -> StatusOr<int64_t> {
    const std::vector<int64_t>& found = places[column];
    if (found.size() == 1) return found.front();
    if (!schema.header()) return UserError(place + what + "no field reads " + Shown(column));
    return UserError(place + what + "found columns " + FirstNames(names) + "; expected one '" +
                     column + "'" + (found.empty() ? "" : ", and there are more") +
                     DelimiterHint(schema, names.size()));
  };
  RowColumns columns;
  int64_t next = 0;
  for (const Field& field : schema.fields()) {
    if (!schema.header() && field.column().empty()) {
      columns.of_fields.push_back(next++);
    } else {
      const std::string& column = field.column().empty() ? field.name() : field.column();
      ELASTOR_ASSIGN_OR_RETURN(const int64_t at, find("field " + field.name() + ": ", column));
      columns.of_fields.push_back(at);
    }
    if (!schema.header()) places[field.name()] = {columns.of_fields.back()};
  }
  for (const SideTable& table : tables) {
    ELASTOR_ASSIGN_OR_RETURN(const int64_t at, find(LookupPlace(table.file()), table.by()));
    if (at < 0) {
      return UserError(place + LookupPlace(table.file()) + "by is " + Shown(table.by()) +
                       ", which a lookup has; expected a column of the rows");
    }
    columns.of_keys.push_back(at);
  }
  for (const History& history : schema.history()) {
    const auto add = [&](const char* what, const std::string& column) -> Status {
      ELASTOR_ASSIGN_OR_RETURN(const int64_t at, find(HistoryName(history) + what + ": ", column));
      if (at <= first_history) {
        return UserError(StrCat(place, HistoryName(history), what, " is ", Shown(column),
                                ", which a history makes; expected a column of the rows"));
      }
      columns.of_events.push_back(at);
      return OkStatus();
    };
    ELASTOR_RETURN_IF_ERROR(add("by", history.by()));
    if (events == Events::kNone) {
      columns.of_events.resize(columns.of_events.size() + 2 + history.beside_size(), -1);
      continue;
    }
    if (history.where().empty()) {
      columns.of_events.push_back(-1);
    } else {
      ELASTOR_ASSIGN_OR_RETURN(const RowCondition where, RowCondition::Parse(history.where()));
      ELASTOR_RETURN_IF_ERROR(add("where", where.column()));
    }
    ELASTOR_RETURN_IF_ERROR(add("of", history.of()));
    for (const HistoryColumn& beside : history.beside()) {
      if (beside.time_gap()) {
        columns.of_events.push_back(-1);
        continue;
      }
      ELASTOR_RETURN_IF_ERROR(add("of", beside.of()));
    }
  }
  if (!schema.has_negatives() || events == Events::kNone) return columns;
  const auto draw = [&](const char* what, const std::string& column, int64_t least) -> Status {
    const std::string name = StrCat("negatives: ", what, ": ");
    ELASTOR_ASSIGN_OR_RETURN(const int64_t at, find(name, column));
    if (at < least) {
      return UserError(
          StrCat(place, "negatives: ", what, " is ", Shown(column),
                 ", which a lookup or a history makes; expected a column of the rows"));
    }
    columns.of_draws.push_back(at);
    return OkStatus();
  };
  const Negatives& negatives = schema.negatives();
  ELASTOR_RETURN_IF_ERROR(draw("user", negatives.user(), first_history + 1));
  ELASTOR_RETURN_IF_ERROR(draw("of", negatives.of(), 0));
  for (const std::string& column : negatives.beside()) {
    ELASTOR_RETURN_IF_ERROR(draw("beside", column, 0));
  }
  // A negative has its row's time, group, weight and user.
  const std::vector<int64_t> of_item(columns.of_draws.begin() + 1, columns.of_draws.end());
  const auto check = [&](const std::string& reader, const std::string& column,
                         int64_t at) -> Status {
    bool changes = std::ranges::find(of_item, at) != of_item.end();
    int64_t end = kFirstCell;
    for (size_t i = 0; i < tables.size(); ++i) {
      const int64_t begin = end;
      end -= std::ssize(tables[i].columns());
      const bool by_item = std::ranges::find(of_item, columns.of_keys[i]) != of_item.end();
      changes = changes || (by_item && at <= begin && at > end);
    }
    if (!changes) return OkStatus();
    return UserError(StrCat(place, "negatives: ", reader, " reads ", Shown(column),
                            ", which changes with the item; expected a column that does not"));
  };
  ELASTOR_RETURN_IF_ERROR(check("user", negatives.user(), columns.of_draws[0]));
  for (int i = 0; i < schema.fields_size(); ++i) {
    const Field& field = schema.fields(i);
    const Field::Type type = field.type();
    if (type != Field::TIME && type != Field::GROUP && type != Field::WEIGHT) continue;
    ELASTOR_RETURN_IF_ERROR(
        check(StrCat("field ", field.name(), " of type ", Field::Type_Name(type)),
              field.column().empty() ? field.name() : field.column(), columns.of_fields[i]));
  }
  return columns;
}

}  // namespace elastor
