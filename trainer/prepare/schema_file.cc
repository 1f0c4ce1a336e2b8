#include "trainer/prepare/schema_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "trainer/data/file_kind.h"
#include "trainer/fields/text_message.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/rows/pair_lines.h"
#include "trainer/prepare/rows/row_builder.h"
#include "trainer/prepare/rows/side_table.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr double kShareTolerance = 1e-6;
constexpr int64_t kMostBuckets = int64_t{1} << 48;
constexpr int64_t kMostSchemaBytes = 16 << 20;
constexpr int64_t kMostSyntheticFields = 1 << 16;
constexpr int64_t kMostNames = 1 << 16;
constexpr double kMostDrift = 1e6;
constexpr size_t kMostDelimiterBytes = 16;
constexpr int64_t kMostSkippedLines = 1000;
constexpr int64_t kDefaultNegatives = 4;
constexpr int64_t kMostNegatives = 100;

constexpr auto kRules = PartOfLayouts<&LayoutRow::rules>();

// meta.json and the lines of errors hold names.
bool HasControlCharacter(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool Has(const google::protobuf::RepeatedPtrField<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

bool IsCategorical(Field::Type type) {
  return type == Field::CATEGORICAL || type == Field::MULTI_HOT || type == Field::SEQUENCE;
}

bool IsBag(Field::Type type) { return type == Field::MULTI_HOT || type == Field::SEQUENCE; }

bool HasTime(const Schema& schema) {
  return std::ranges::any_of(schema.fields(),
                             [](const Field& field) { return field.type() == Field::TIME; });
}

// Returns the column of a history that a field reads.
std::optional<HistoryPlace> HistoryReadBy(const Schema& schema, const Field& field) {
  const bool by_name = field.column().empty() && schema.header();
  const std::string& column = by_name ? field.name() : field.column();
  for (const HistoryPlace& place : HistoryPlaces(schema)) {
    if (place.column == column) return place;
  }
  return std::nullopt;
}

bool HasColumns(const Schema& schema) { return RulesOf(schema).source == RowSource::kColumns; }

// "layout DELIMITED", "layouts DELIMITED and LIBSVM": those for which `has` holds.
template <typename Predicate>
std::string LayoutsThat(const Predicate& has) {
  std::vector<std::string> names;
  for (const LayoutRules& rules : kRules) {
    if (has(rules)) names.push_back(Schema::Layout_Name(rules.layout));
  }
  const std::string last = names.back();
  names.pop_back();
  if (names.empty()) return "layout " + last;
  return "layouts " + Join(names, ", ") + " and " + last;
}

std::string LayoutsOfColumns() {
  return LayoutsThat([](const LayoutRules& rules) { return rules.source == RowSource::kColumns; });
}

std::string LayoutsOfPairs() {
  return LayoutsThat([](const LayoutRules& rules) { return rules.source == RowSource::kPairs; });
}

// What is wrong with one field; the caller names the field.
Status Wrong(const std::string& what, const std::string& found, const std::string& expected) {
  return UserError(what + " is " + found + "; expected " + expected);
}

// Whether `text`, of one to `most` characters, can stand between values.
Status CheckBetween(const std::string& what, const std::string& text, size_t most) {
  constexpr std::string_view kUnusable("\n\r\0\"", 4);
  if (text.size() <= most && text.find_first_of(kUnusable) == text.npos) return OkStatus();
  const std::string characters = most == 1 ? "one character" : StrCat("1 to ", most, " characters");
  return Wrong(what, Shown(text), characters + ", no quote and no line feed");
}

// What a text of `names` stands for: "C1..C26", 26 names; another text, itself.
StatusOr<std::vector<std::string>> NamesOfRange(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == text.npos) return std::vector<std::string>{text};
  const std::string first = text.substr(0, dots), last = text.substr(dots + 2);
  const auto prefix_size = [](const std::string& name) {
    return name.find_last_not_of("0123456789") + 1;  // 0 when there is nothing else
  };
  const size_t prefix = prefix_size(first);
  const std::string first_digits = first.substr(prefix);
  const std::string last_digits = last.substr(prefix_size(last));
  // Zeros at the front are part of all numbers, or of none.
  const bool padded = first_digits.starts_with('0') && first_digits.size() > 1;
  int64_t begin = 0, end = -1;
  const bool numbers =
      ParseInteger(first_digits, &begin) && ParseInteger(last_digits, &end) &&
      first.substr(0, prefix) == last.substr(0, prefix_size(last)) &&
      (padded ? last_digits.size() == first_digits.size() : !last_digits.starts_with('0'));
  if (numbers && end - begin >= kMostNames) {
    return Wrong("names", Shown(text), StrCat("a range of at most ", kMostNames, " names"));
  }
  if (!numbers || begin >= end) {
    return Wrong("names", Shown(text), "names, or a range such as \"C1..C26\", ascending");
  }
  std::vector<std::string> names;
  for (int64_t number = begin; number <= end; ++number) {
    std::string digits = std::to_string(number);
    if (padded) digits.insert(0, first_digits.size() - digits.size(), '0');
    names.push_back(first.substr(0, prefix) + digits);
  }
  return names;
}

// Puts a field of its own in the place of every name that a field with `names` stands for.
Status ExpandNames(Schema* schema) {
  google::protobuf::RepeatedPtrField<Field> fields;
  fields.Swap(schema->mutable_fields());
  for (Field& field : fields) {
    if (field.names().empty()) {
      schema->add_fields()->Swap(&field);
      continue;
    }
    if (!field.name().empty() || !field.column().empty()) {
      return UserError("field " + Shown(field.names(0)) +
                       ": names stand with name or column; expected them alone");
    }
    // A copy of the names in each field would take the square of their number.
    google::protobuf::RepeatedPtrField<std::string> texts;
    texts.Swap(field.mutable_names());
    for (const std::string& text : texts) {
      ELASTOR_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfRange(text));
      for (const std::string& name : names) {
        Field* one = schema->add_fields();
        *one = field;
        one->set_name(name);
      }
    }
  }
  return OkStatus();
}

// How a LABEL's texts become 0 and 1.
Status CheckLabel(const Field& field, const Schema& schema) {
  const bool texts = !field.positive().empty() || !field.negative().empty();
  if (field.type() != Field::LABEL) {
    if (!texts && !field.has_at_least()) return OkStatus();
    return UserError("at_least, positive and negative are for type LABEL");
  }
  if (texts && field.has_at_least()) {
    return UserError("at_least and positive are both given; expected one of them");
  }
  if (field.has_at_least() && !std::isfinite(field.at_least())) {
    return UserError("at_least is not finite");
  }
  if (texts && field.positive().empty()) {
    return UserError("negative is given without positive; expected the texts that are 1, too");
  }
  for (const std::string& text : field.positive()) {
    if (Has(field.negative(), text)) {
      return UserError(Shown(text) + " is positive and negative; expected one of them");
    }
  }
  for (const std::string& text : schema.null()) {
    float label;
    double number;
    const bool value = texts ? Has(field.positive(), text) || Has(field.negative(), text)
                       : field.has_at_least() ? ParseNumber(text, &number)
                                              : ParseLabel(text, &label);
    if (value) return UserError("null " + Shown(text) + " is also a value of this label");
  }
  return OkStatus();
}

Status CheckTransform(const Field& field) {
  const Field::Transform transform = field.transform();
  const std::string& name = Field::Transform_Name(transform);
  const bool of_number = transform == Field::LOG2_STANDARDIZE || transform == Field::STANDARDIZE ||
                         transform == Field::LOG2;
  if (transform != Field::NONE && of_number && field.type() != Field::NUMERIC) {
    return Wrong("transform", name, "a NUMERIC field for it");
  }
  if (transform != Field::NONE && !of_number && field.type() != Field::CATEGORICAL) {
    return Wrong("transform", name, "a CATEGORICAL field for it");
  }
  if (transform == Field::BUCKET && field.boundaries().empty()) {
    return Wrong("boundaries", "empty", "at least one for BUCKET");
  }
  if (transform != Field::BUCKET && !field.boundaries().empty()) {
    return UserError("boundaries are for transform BUCKET");
  }
  for (int i = 0; i < field.boundaries_size(); ++i) {
    if (!std::isfinite(field.boundaries(i)) ||
        (i > 0 && field.boundaries(i) <= field.boundaries(i - 1))) {
      return UserError(
          StrCat("boundaries: number ", i + 1,
                 " is not above the one before it; expected ascending finite numbers"));
    }
  }
  const bool of_time = field.type() == Field::TIME || transform >= Field::HOUR;
  if (field.time_format() != Field::UNIX_SECONDS && !of_time) {
    return UserError("time_format is for type TIME and transforms of a time");
  }
  return OkStatus();
}

Status CheckEncoding(const Field& field) {
  const bool set = field.encoding() != Field::VOCABULARY || field.has_min_count() ||
                   field.buckets() != 0 || field.offset() != 0;
  if (!IsCategorical(field.type())) {
    if (!set) return OkStatus();
    return UserError("encoding, min_count, buckets and offset are for categorical fields");
  }
  if (!field.shares().empty()) {
    if (!set) return OkStatus();
    return UserError("encoding, min_count, buckets and offset are those of " + field.shares() +
                     ", which it shares; expected none here");
  }
  const bool keyed = MakesKeys(field.encoding());
  const bool bounded = field.encoding() != Field::VOCABULARY && !keyed;
  if (keyed && field.buckets() != 0) {
    return UserError(
        "buckets are for HASH and IDENTITY; `capacity` in the experiment's embedding.tables bounds "
        "a "
        "table of keys");
  }
  if (keyed && field.has_min_count()) {
    return UserError("min_count is for VOCABULARY; a table of keys takes every key");
  }
  if (bounded && (field.buckets() < 1 || field.buckets() > kMostBuckets)) {
    return Wrong("buckets", std::to_string(field.buckets()), "1 to 2^48 for HASH and IDENTITY");
  }
  if (!bounded && field.buckets() != 0) return UserError("buckets are for HASH and IDENTITY");
  if (field.encoding() != Field::IDENTITY && field.offset() != 0) {
    return UserError("offset is for IDENTITY");
  }
  if (std::abs(static_cast<double>(field.offset())) > static_cast<double>(kMostBuckets)) {
    return Wrong("offset", std::to_string(field.offset()), "-2^48 to 2^48");
  }
  if (field.has_min_count() && field.min_count() < 1) {
    return Wrong("min_count", std::to_string(field.min_count()), "1 or more");
  }
  if (bounded && field.has_min_count()) return UserError("min_count is for VOCABULARY");
  return OkStatus();
}

Status CheckBag(const Field& field, const Schema& schema) {
  if (field.has_max_length() && field.max_length() < 1) {
    return Wrong("max_length", std::to_string(field.max_length()), "1 or more");
  }
  ELASTOR_RETURN_IF_ERROR(CheckBetween("separator", field.separator(), 1));
  if (!IsBag(field.type())) {
    if (!field.has_max_length() && field.separator().empty() && field.pooling() == Field::SUM &&
        field.list() == Field::PLAIN && !field.keep_missing()) {
      return OkStatus();
    }
    return UserError(
        "max_length, separator, list, keep_missing and pooling are for MULTI_HOT and SEQUENCE");
  }
  if (field.list() == Field::BRACKETS && !field.separator().empty()) {
    return UserError(
        "separator is for list PLAIN and TRIMMED; commas are between items of BRACKETS");
  }
  if (field.list() != Field::PLAIN && !HasColumns(schema)) {
    return UserError("list is for " + LayoutsOfColumns());
  }
  if (field.keep_missing() && !HasColumns(schema)) {
    return UserError("keep_missing is for " + LayoutsOfColumns());
  }
  if (field.keep_missing() && field.encoding() == Field::IDENTITY) {
    return Wrong("encoding", "IDENTITY", "another, as keep_missing gives missing values an id");
  }
  const std::string separator = field.separator().empty() ? "|" : field.separator();
  const bool separated = HasColumns(schema) && field.list() != Field::BRACKETS;
  if (separated && !schema.quoted() && separator == DelimiterOf(schema)) {
    return UserError("separator is the delimiter of columns; expected another, or quoted values");
  }
  return OkStatus();
}

// A field of layouts LIBSVM and LIBFFM.
Status CheckPair(const Schema& schema, int number) {
  const Field& field = schema.fields(number);
  const std::string& layout = Schema::Layout_Name(schema.layout());
  const bool last = std::none_of(schema.fields().begin() + number + 1, schema.fields().end(),
                                 [](const Field& other) { return ReadsPairs(other); });
  if (field.type() == Field::MULTI_HOT && !last && schema.layout() == Schema::LIBSVM) {
    return UserError("a MULTI_HOT field of " + layout +
                     " takes all remaining pairs, so must be last");
  }
  if (field.type() == Field::SEQUENCE || field.type() == Field::WEIGHT ||
      field.type() == Field::TIME) {
    return Wrong("type", Field::Type_Name(field.type()),
                 "NUMERIC, CATEGORICAL, MULTI_HOT, IGNORED, LABEL or GROUP in " + layout);
  }
  if (field.transform() > Field::LOG2) {
    return Wrong("transform", Field::Transform_Name(field.transform()), LayoutsOfColumns());
  }
  if (field.any_value() && field.type() == Field::CATEGORICAL &&
      schema.layout() == Schema::LIBSVM) {
    return UserError("any_value is for MULTI_HOT in LIBSVM, as a pair with 0 has no place");
  }
  if (!field.column().empty()) return UserError("column is for " + LayoutsOfColumns());
  return OkStatus();
}

Status CheckPlace(const Schema& schema, int number) {
  const Field& field = schema.fields(number);
  const bool pairs = RulesOf(schema).source == RowSource::kPairs;
  const bool any = pairs && (field.type() == Field::CATEGORICAL || IsBag(field.type()));
  if (field.any_value() && !any) {
    return UserError("any_value is for CATEGORICAL and MULTI_HOT in " + LayoutsOfPairs());
  }
  if (pairs) ELASTOR_RETURN_IF_ERROR(CheckPair(schema, number));
  if (schema.header() || field.column().empty()) return OkStatus();
  for (int i = 0; i < number; ++i) {
    if (schema.fields(i).name() == field.column()) return OkStatus();
  }
  for (const Lookup& lookup : schema.lookup()) {
    if (Has(lookup.columns(), field.column())) return OkStatus();
  }
  if (HistoryReadBy(schema, field)) return OkStatus();
  return Wrong("column", Shown(field.column()),
               std::string("an earlier field, as there is no header") +
                   (schema.lookup().empty() ? "" : ", or a column of a lookup") +
                   (schema.history().empty() ? "" : ", or a history"));
}

// What a field makes of the row's time needs it.
Status CheckTimeIsEarlier(const Schema& schema, int number, const std::string& what) {
  const auto* begin = schema.fields().data();
  const bool earlier = std::any_of(begin, begin + number,
                                   [](const Field* field) { return field->type() == Field::TIME; });
  if (earlier) return OkStatus();
  return UserError(what + " is up to the row's time; expected the field of type TIME before it");
}

// Gives a field that reads a history its length.
Status ResolveHistory(Schema* schema, int number) {
  Field& field = *schema->mutable_fields(number);
  const std::optional<HistoryPlace> place = HistoryReadBy(*schema, field);
  if (!place) return OkStatus();
  if (field.type() != Field::SEQUENCE) {
    return Wrong("type", Field::Type_Name(field.type()), "SEQUENCE, as it reads a history");
  }
  const History& history = schema->history(place->history);
  if (!field.has_max_length()) field.set_max_length(LengthOf(history));
  if (place->time_gap) ELASTOR_RETURN_IF_ERROR(CheckTimeIsEarlier(*schema, number, "time_gap"));
  const bool beside = place->place > 0 && !place->time_gap;
  const std::string& of = place->place > 0 ? history.beside(place->place - 1).of() : history.of();
  for (const Field& other : schema->fields()) {
    if (field.shares().empty() || other.name() != field.shares()) continue;
    const std::string& column = other.column().empty() ? other.name() : other.column();
    if (other.transform() != Field::NONE || (IsBag(other.type()) && column == of)) {
      return Wrong("shares", Shown(field.shares()),
                   "a field whose values are those of the history: no transform, no list");
    }
    if (beside && other.encoding() == Field::IDENTITY) {
      return Wrong("shares", Shown(field.shares()),
                   "another encoding than IDENTITY, as values of `beside` may be missing");
    }
  }
  if (beside && field.encoding() == Field::IDENTITY) {
    return Wrong("encoding", "IDENTITY", "another, as values of `beside` may be missing");
  }
  return OkStatus();
}

// Gives a field that shares the encoding of the one it shares.
Status ResolveShares(Schema* schema, int number) {
  Field& field = *schema->mutable_fields(number);
  if (field.shares().empty()) return OkStatus();
  if (!IsCategorical(field.type())) return UserError("shares is for categorical fields");
  for (int i = 0; i < number; ++i) {
    const Field& other = schema->fields(i);
    if (other.name() != field.shares()) continue;
    if (!IsCategorical(other.type()) || !other.shares().empty()) break;
    field.set_encoding(other.encoding());
    if (other.has_min_count()) field.set_min_count(other.min_count());
    field.set_buckets(other.buckets());
    field.set_offset(other.offset());
    return OkStatus();
  }
  return Wrong("shares", Shown(field.shares()),
               "an earlier categorical field that shares none itself");
}

Status CheckField(const Schema& schema, int number) {
  const Field& field = schema.fields(number);
  ELASTOR_RETURN_IF_ERROR(CheckTransform(field));
  ELASTOR_RETURN_IF_ERROR(CheckEncoding(field));
  ELASTOR_RETURN_IF_ERROR(CheckBag(field, schema));
  ELASTOR_RETURN_IF_ERROR(CheckLabel(field, schema));
  if (field.transform() == Field::AGE || field.transform() == Field::DAYS_SINCE) {
    ELASTOR_RETURN_IF_ERROR(
        CheckTimeIsEarlier(schema, number, Field::Transform_Name(field.transform())));
  }
  return CheckPlace(schema, number);
}

Status CheckLines(const Schema& schema) {
  if (schema.skip_lines() < 0 || schema.skip_lines() > kMostSkippedLines) {
    return Wrong("skip_lines", std::to_string(schema.skip_lines()), "0 to 1000");
  }
  if (MakesItsFields(schema) && schema.skip_lines() > 0) {
    return UserError("skip_lines is for " +
                     LayoutsThat([](const LayoutRules& rules) { return !rules.makes_fields; }));
  }
  if (!HasColumns(schema)) {
    if (schema.delimiter().empty() && !schema.header() && !schema.quoted() &&
        schema.null().empty()) {
      return OkStatus();
    }
    return UserError("delimiter, header, quoted and null are for " + LayoutsOfColumns());
  }
  ELASTOR_RETURN_IF_ERROR(CheckBetween("delimiter", schema.delimiter(), kMostDelimiterBytes));
  for (const std::string& text : schema.null()) {
    const bool cut = !schema.quoted() && text.find(DelimiterOf(schema)) != text.npos;
    if (cut || text.find_first_of("\n\r") != text.npos) {
      return Wrong("null", Shown(text), "a text that can stand between two delimiters");
    }
  }
  return OkStatus();
}

// A column that two tables have, or that hides one of rows without a header. What a header names is
// known later.
Status CheckLookupColumn(const Schema& schema, const std::string& column,
                         std::set<std::string>* columns) {
  if (column.empty() || HasControlCharacter(column)) {
    return Wrong("a column", Shown(column), "a name");
  }
  if (!columns->insert(column).second) {
    return UserError("column " + Shown(column) + " stands twice in lookups; expected it once");
  }
  if (schema.header()) return OkStatus();
  for (const Field& field : schema.fields()) {
    if (field.name() != column || field.column() == column) continue;
    return UserError("column " + Shown(column) +
                     " is also a field of the rows; expected another name, or column: " +
                     Shown(column) + " in that field");
  }
  return OkStatus();
}

Status CheckLookup(const Schema& schema, const Lookup& lookup, std::set<std::string>* columns) {
  if (lookup.by().empty()) return UserError("by is missing; expected a column of the rows");
  if (lookup.key().empty()) return UserError("key is missing; expected a column of the file");
  if (lookup.columns().empty()) return UserError("columns are missing; expected one or more");
  if (!lookup.xxh3().empty() && !IsHashText(lookup.xxh3())) {
    return Wrong("xxh3", Shown(lookup.xxh3()), "16 hex digits");
  }
  const Schema table = TableSchema(schema, lookup);
  ELASTOR_RETURN_IF_ERROR(CheckLines(table));
  const int64_t keys = std::ranges::count(lookup.columns(), lookup.key());
  if (table.header() && keys > 0) {
    return UserError("key " + Shown(lookup.key()) + " is among columns; expected the others alone");
  }
  if (!table.header() && keys != 1) {
    return UserError("key " + Shown(lookup.key()) + " is " + (keys == 0 ? "not" : "twice") +
                     " among columns; expected all columns of the file there, as it has no header");
  }
  for (const std::string& column : lookup.columns()) {
    if (column == lookup.key()) continue;
    ELASTOR_RETURN_IF_ERROR(CheckLookupColumn(schema, column, columns));
  }
  return OkStatus();
}

Status CheckLookups(const Schema& schema) {
  if (!schema.lookup().empty() && !HasColumns(schema)) {
    return UserError("lookup is for " + LayoutsOfColumns());
  }
  std::set<std::string> columns;  // of all lookups
  for (const Lookup& lookup : schema.lookup()) {
    if (lookup.file().empty()) return UserError("lookup: file is missing; expected a path");
    const Status status = CheckLookup(schema, lookup, &columns);
    if (!status.ok()) return UserError(LookupPlace(lookup.file()) + status.message());
  }
  return OkStatus();
}

Status CheckHistory(const Schema& schema, const History& history) {
  for (const auto& [what, column] :
       {std::pair("of", &history.of()), std::pair("by", &history.by())}) {
    if (!column->empty()) continue;
    return UserError(StrCat(what, " is missing; expected a column of the rows"));
  }
  const auto time = std::ranges::find(schema.fields(), Field::TIME, &Field::type);
  if (time == schema.fields().end()) {
    return UserError("no field of type TIME; expected one, which tells which rows are earlier");
  }
  if (!history.order().empty() && history.order() != time->name() &&
      history.order() != time->column()) {
    return Wrong("order", Shown(history.order()), Shown(time->name()) + ", the field of type TIME");
  }
  if (!history.where().empty()) {
    ELASTOR_RETURN_IF_ERROR(RowCondition::Parse(history.where()).status());
  }
  const int64_t length = LengthOf(history);
  if (length < 1 || length > kMostHistoryLength) {
    return Wrong("max_length", std::to_string(length), "1 to 65536");
  }
  for (const HistoryColumn& beside : history.beside()) {
    if (beside.of().empty() == beside.time_gap()) continue;
    return UserError(beside.time_gap()
                         ? "beside: of and time_gap are both given; expected one of them"
                         : "beside: of is missing; expected a column of the rows");
  }
  return OkStatus();
}

// What a header names is known later.
Status CheckHistories(const Schema& schema) {
  if (!schema.history().empty() && !HasColumns(schema)) {
    return UserError("history is for " + LayoutsOfColumns());
  }
  std::set<std::string> columns;  // of lookups, then of histories
  for (const Lookup& lookup : schema.lookup()) {
    columns.insert(lookup.columns().begin(), lookup.columns().end());
  }
  for (const HistoryPlace& place : HistoryPlaces(schema)) {
    const History& history = schema.history(place.history);
    const std::string& column = place.column;
    if (column.empty() || HasControlCharacter(column)) {
      return UserError(HistoryName(history) + "a name is " + Shown(column) + "; expected a text");
    }
    if (!columns.insert(column).second) {
      return UserError(HistoryName(history) + "another column has the name " + Shown(column) +
                       "; expected one of that name");
    }
    const auto hides = [&](const Field& field) {
      return !schema.header() && field.name() == column && field.column() != column;
    };
    const auto reads = [&](const Field& field) {
      const auto read = HistoryReadBy(schema, field);
      return read && read->column == column;
    };
    if (std::ranges::any_of(schema.fields(), hides)) {
      return UserError(HistoryName(history) + "a field of the rows has the name " + Shown(column) +
                       "; expected another, or column: " + Shown(column) + " in that field");
    }
    if (std::ranges::none_of(schema.fields(), reads)) {
      return UserError(HistoryName(history) + "no field reads " + Shown(column) +
                       "; expected one of type SEQUENCE with this " +
                       (schema.header() ? "name" : "column"));
    }
  }
  for (const History& history : schema.history()) {
    const Status status = CheckHistory(schema, history);
    if (!status.ok()) return UserError(HistoryName(history) + status.message());
  }
  return OkStatus();
}

// What a header names is known later.
Status CheckNegatives(Schema* schema) {
  if (!schema->has_negatives()) return OkStatus();
  if (!HasColumns(*schema)) return UserError("negatives are for " + LayoutsOfColumns());
  Negatives& negatives = *schema->mutable_negatives();
  if (!negatives.has_per_positive()) negatives.set_per_positive(kDefaultNegatives);
  if (negatives.per_positive() < 1 || negatives.per_positive() > kMostNegatives) {
    return Wrong("negatives: per_positive", std::to_string(negatives.per_positive()), "1 to 100");
  }
  std::set<std::string> columns;
  for (const auto& [what, column] :
       {std::pair("of", negatives.of()), std::pair("user", negatives.user())}) {
    if (column.empty()) {
      return UserError(StrCat("negatives: ", what, " is missing; expected a column of the rows"));
    }
    if (!columns.insert(column).second) {
      return UserError("negatives: of and user are both " + Shown(column) +
                       "; expected the column of items and that of users");
    }
  }
  for (const std::string& column : negatives.beside()) {
    if (columns.insert(column).second) continue;
    return UserError("negatives: column " + Shown(column) + " stands twice; expected it once");
  }
  int labels = 0;
  for (const Field& field : schema->fields()) {
    if (field.type() != Field::LABEL) continue;
    if (++labels > 1)
      return UserError("negatives: there are several labels; expected one, or none");
    if (field.name() != negatives.of() && field.column() != negatives.of()) continue;
    return UserError("negatives: of is " + Shown(negatives.of()) +
                     ", the label; expected the column of items");
  }
  return OkStatus();
}

Status CheckTimeSplit(const Schema& schema, bool shares) {
  const SplitPlan& split = schema.split();
  const bool times = !split.validation_from().empty() || !split.test_from().empty();
  if (!HasTime(schema)) return UserError("split: by is TIME; expected a field of type TIME");
  if (times == shares) {
    return UserError(StrCat("split: by is TIME with ",
                            times ? "validation_from or test_from beside shares"
                                  : "neither shares nor validation_from or test_from",
                            "; expected one of them"));
  }
  if (times && split.whole_days()) return UserError("split: whole_days is for shares");
  int64_t seconds[2] = {0, 0};
  const std::string* from[2] = {&split.validation_from(), &split.test_from()};
  for (int i = 0; i < 2; ++i) {
    if (from[i]->empty() || ParseTime(*from[i], Field::YYYY_MM_DD_HH_MM_SS, &seconds[i])) continue;
    return UserError(StrCat("split: ", i == 0 ? "validation_from" : "test_from", " is ",
                            Shown(*from[i]), "; expected a time such as 2014-10-28 or ",
                            "2014-10-28 12:00:00, in UTC"));
  }
  if (!from[0]->empty() && !from[1]->empty() && seconds[0] >= seconds[1]) {
    return UserError("split: validation_from is not before test_from");
  }
  return OkStatus();
}

Status CheckSplit(const Schema& schema) {
  const SplitPlan& split = schema.split();
  const double sum = split.train() + split.validation() + split.test();
  if (!(split.train() >= 0 && split.validation() >= 0 && split.test() >= 0)) {
    return UserError("split: a share is negative");
  }
  if (sum != 0 && !(std::abs(sum - 1) <= kShareTolerance)) {
    return UserError("split: the shares sum to " + std::to_string(sum) + "; expected 1");
  }
  if (sum == 0 && (split.has_train() || split.has_validation() || split.has_test())) {
    return UserError("split: the shares are all 0; expected shares that sum to 1, or none");
  }
  if (split.by() != SplitPlan::HASH && !split.hash_field().empty()) {
    return UserError("split: hash_field is for by: HASH");
  }
  if (split.by() == SplitPlan::TIME) return CheckTimeSplit(schema, sum > 0);
  if (!split.validation_from().empty() || !split.test_from().empty() || split.whole_days()) {
    return UserError("split: validation_from, test_from and whole_days are for by: TIME");
  }
  if (split.by() != SplitPlan::HASH) return OkStatus();
  if (MakesItsFields(schema)) {
    return UserError("split: by is HASH; expected ORDER in layout " +
                     Schema::Layout_Name(schema.layout()));
  }
  if (sum == 0) return UserError("split: by is HASH; expected shares that sum to 1 beside it");
  if (split.hash_field().empty()) return OkStatus();
  const bool named =
      std::any_of(schema.fields().begin(), schema.fields().end(), [&](const Field& field) {
        return field.name() == split.hash_field() && !HistoryReadBy(schema, field) &&
               (HasColumns(schema) || field.type() == Field::GROUP);
      });
  if (named) return OkStatus();
  return UserError("split: hash_field is " + Shown(split.hash_field()) + "; expected a field of " +
                   LayoutsOfColumns() + ", or of type GROUP");
}

// A part of the schema that another layout has.
Status CheckOwnFields(const Schema& schema) {
  for (const LayoutRules& rules : kRules) {
    if (rules.own_field == 0 || rules.own_field == RulesOf(schema).own_field) continue;
    const auto* field = Schema::descriptor()->FindFieldByNumber(rules.own_field);
    if (!schema.GetReflection()->HasField(schema, field)) continue;
    return UserError("`" + field->name() + "` is for " + LayoutsThat([&](const LayoutRules& other) {
                       return other.own_field == rules.own_field;
                     }));
  }
  return OkStatus();
}

Status CheckSchema(Schema* schema) {
  if (HasControlCharacter(schema->name())) return UserError("name has a control character");
  if (schema->max_bad_rows() < 0) return UserError("max_bad_rows is negative");
  if (schema->has_rows_per_block() &&
      (schema->rows_per_block() < 1 || schema->rows_per_block() > (1 << 20))) {
    return UserError("rows_per_block must be 1 to 2^20");
  }
  ELASTOR_RETURN_IF_ERROR(CheckLines(*schema));
  ELASTOR_RETURN_IF_ERROR(CheckLookups(*schema));
  ELASTOR_RETURN_IF_ERROR(CheckHistories(*schema));
  ELASTOR_RETURN_IF_ERROR(CheckNegatives(schema));
  ELASTOR_RETURN_IF_ERROR(CheckSplit(*schema));
  ELASTOR_RETURN_IF_ERROR(CheckOwnFields(*schema));
  if (schema->sort_by_time() && !HasTime(*schema)) {
    return UserError("sort_by_time: no field of type TIME; expected one");
  }
  if (MakesItsFields(*schema) && schema->fields_size() > 0) {
    return UserError(Schema::Layout_Name(schema->layout()) +
                     " makes its own fields; remove `fields`");
  }
  const LayoutRules& rules = RulesOf(*schema);
  return rules.check == nullptr ? OkStatus() : rules.check(schema);
}

StatusOr<Schema> Checked(Schema schema, const std::string& source) {
  Status status = ExpandNames(&schema);
  if (status.ok()) status = CheckSchema(&schema);
  if (!status.ok()) return UserError(source + ": " + status.message());
  return schema;
}

}  // namespace

const LayoutRules& RulesOf(const Schema& schema) {
  const auto* rules = std::ranges::find(kRules, schema.layout(), &LayoutRules::layout);
  CHECK(rules != kRules.end()) << "layout " << schema.layout();
  return *rules;
}

Status CheckSchemaFields(Schema* schema) {
  if (schema->fields_size() == 0) return UserError("no fields");
  std::set<std::string> names;
  std::map<Field::Type, std::string> only;  // fields of types of which there is one at most
  for (int i = 0; i < schema->fields_size(); ++i) {
    const Field& field = schema->fields(i);
    if (field.name().empty() || HasControlCharacter(field.name())) {
      return UserError(
          StrCat("field number ", i + 1,
                 field.name().empty() ? " has no name" : " has a control character in its name"));
    }
    const std::string name = "field " + field.name() + ": ";
    if (!names.insert(field.name()).second) return UserError(name + "is named twice");
    Status status = CheckField(*schema, i);
    if (status.ok()) status = ResolveShares(schema, i);
    if (status.ok()) status = ResolveHistory(schema, i);
    if (!status.ok()) return UserError(name + status.message());
    if (field.type() < Field::LABEL || field.type() == Field::IGNORED) continue;
    const auto [at, first] = only.try_emplace(field.type(), field.name());
    if (!first && (field.type() != Field::LABEL || !HasColumns(*schema))) {
      return UserError(name + "type is " + Field::Type_Name(field.type()) + "; expected one such " +
                       "field, and " + at->second + " is one");
    }
  }
  if (HasColumns(*schema) && only.count(Field::LABEL) == 0 && !schema->has_negatives()) {
    return UserError("no field of type LABEL; expected one in " + LayoutsOfColumns() +
                     ", or `negatives` where all rows are positive");
  }
  if (!HasColumns(*schema) && std::ranges::none_of(schema->fields(), ReadsPairs)) {
    return UserError("no field reads pairs; expected one beside LABEL and GROUP");
  }
  return OkStatus();
}

Status CheckSyntheticPlan(Schema* schema) {
  const Synthetic& plan = schema->synthetic();
  if (plan.rows() < 1) return UserError("synthetic.rows must be at least 1");
  int64_t fields = 0;
  for (const int64_t count :
       {plan.numeric_fields(), plan.categorical_fields(), plan.multi_hot_fields()}) {
    if (count < 0) return UserError("synthetic: a number of fields is negative");
    fields += count;
  }
  fields += plan.teacher() == Synthetic::HISTORY;
  if (fields < 2) return UserError("synthetic needs at least two fields");
  if (fields > kMostSyntheticFields) {
    return UserError(StrCat("synthetic has ", fields, " fields; expected 2^16 at most"));
  }
  if (plan.categorical_fields() + plan.multi_hot_fields() > 0 &&
      (plan.ids_per_field() < 1 || plan.ids_per_field() > kMostBuckets)) {
    return UserError("synthetic.ids_per_field must be 1 to 2^48");
  }
  if (!(plan.drift() >= 0 && plan.drift() <= kMostDrift)) {
    return UserError("synthetic.drift must be 0 to 1e6");
  }
  if (plan.drift() > 0 && (plan.teacher() == Synthetic::HISTORY ||
                           plan.categorical_fields() + plan.multi_hot_fields() == 0)) {
    return UserError("synthetic.drift is for fields of ids, and for teachers other than HISTORY");
  }
  if (!(plan.zipf_exponent() >= 0 && plan.zipf_exponent() <= 100)) {
    return UserError("synthetic.zipf_exponent must be 0 to 100");
  }
  if (plan.has_rank() && (plan.rank() < 1 || plan.rank() > 256)) {
    return UserError("synthetic.rank must be 1 to 256");
  }
  if (plan.teacher() == Synthetic::COORDINATE_MIXING && plan.has_rank() && plan.rank() < 4) {
    return UserError("synthetic.rank must be at least 4 for COORDINATE_MIXING");
  }
  if (plan.teacher() == Synthetic::HISTORY) {
    if (plan.categorical_fields() < 1 || plan.numeric_fields() + plan.multi_hot_fields() > 0) {
      return UserError("synthetic: HISTORY has categorical fields only, and at least one");
    }
    if (plan.users() < 1 || plan.history_length() < 1 || plan.history_length() > 4096) {
      return UserError("synthetic: HISTORY needs users, and a history_length of 1 to 4096");
    }
    if (plan.interests() < 1 || plan.interests() > plan.ids_per_field()) {
      return UserError("synthetic.interests must be 1 to ids_per_field for HISTORY");
    }
    if (plan.labels() > 1) return UserError("synthetic.labels must be 1 for HISTORY");
    if (plan.log() != Synthetic::NONE && schema->has_split()) {
      return UserError(
          "synthetic: a log has no split; expected it in the schema that reads the log");
    }
  } else if (plan.log() != Synthetic::NONE) {
    return UserError("synthetic.log is for HISTORY");
  } else if (plan.users() != 0 || plan.history_length() != 0 || plan.interests() != 0) {
    return UserError("synthetic: users, history_length and interests are for HISTORY");
  }
  if (!(plan.signal() >= 0 && plan.signal() <= 1000)) {
    return UserError("synthetic.signal must be 0 to 1000");
  }
  if (plan.has_base_rate() && !(plan.base_rate() > 0 && plan.base_rate() < 1)) {
    return UserError("synthetic.base_rate must be in (0, 1)");
  }
  if (plan.has_labels() && (plan.labels() < 1 || plan.labels() > 64)) {
    return UserError("synthetic.labels must be 1 to 64");
  }
  if (!(std::abs(plan.label_correlation()) <= 1)) {
    return UserError("synthetic.label_correlation must be -1 to 1");
  }
  if (!(plan.missing_share() >= 0 && plan.missing_share() < 1)) {
    return UserError("synthetic.missing_share must be in [0, 1)");
  }
  return OkStatus();
}

Status CheckTextPlan(Schema* schema) {
  const int64_t length = schema->text().length();
  if (length >= 2 && length <= kMostNames) return OkStatus();
  return Wrong("text.length", std::to_string(length), "2 to 65536");
}

StatusOr<Schema> ParseSchema(const std::string& text, const std::string& source) {
  Schema schema;
  ELASTOR_RETURN_IF_ERROR(ParseTextMessage(text, source, &schema));
  return Checked(std::move(schema), source);
}

StatusOr<Schema> ParseStoredSchema(const std::string& text, const std::string& source) {
  Schema schema;
  ELASTOR_RETURN_IF_ERROR(ParseTextMessage(text, source, &schema));
  for (Field& field : *schema.mutable_fields()) {
    if (field.shares().empty()) continue;
    field.clear_encoding();
    field.clear_min_count();
    field.clear_buckets();
    field.clear_offset();
  }
  return Checked(std::move(schema), source);
}

StatusOr<Schema> ReadSchemaFile(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) == 0 && facts.st_size > kMostSchemaBytes) {
    return UserError(
        StrCat(path, ": found ", facts.st_size, " bytes, expected a schema of 16 MiB at most"));
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  if (const FileKind* kind = KindOfFile(std::string_view(text).substr(0, kKindBytes))) {
    return UserError(StrCat(path, ": found ", kind->what, ", expected a schema in protobuf text"));
  }
  return ParseSchema(text, path);
}

}  // namespace elastor
