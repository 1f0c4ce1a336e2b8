#include "trainer/prepare/rows/row_parser.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"
#include "trainer/data/record_scanner.h"
#include "trainer/prepare/layouts.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/rows/line_scanner.h"
#include "trainer/prepare/rows/pair_lines.h"
#include "trainer/prepare/rows/row_builder.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr size_t kMostTextBytes = size_t{1} << 31;
constexpr int64_t kWholeLine = -1;
constexpr int64_t kNoColumn = -1;  // of RowColumns::of_events

// Ends a record at the line feed at `feed`.
void EndAt(std::string_view text, size_t feed, ScannedLine* line) {
  line->end = feed - (text[feed - 1] == '\r');
  line->next = feed + 1;
}

// What the column of a field holds in the place of text. Of a table alone.
struct Ready {
  const double* numbers = nullptr;    // by row
  const int64_t* integers = nullptr;  // by row
  bool whole = false;                 // rows need nothing of it
};

// An integer in decimal; empty: missing.
class DecimalText {
 public:
  explicit DecimalText(int64_t value)
      : size_(value == TextColumn::kNone
                  ? 0
                  : std::to_chars(digits_, digits_ + sizeof digits_, value).ptr - digits_) {}
  std::string_view view() const { return {digits_, size_}; }

 private:
  char digits_[20];
  size_t size_;
};

// The columns of a line without quotes: one follows another.
class PlainColumns {
 public:
  explicit PlainColumns(const ScannedLine& line) : line_(line) {}
  std::string_view Text(int64_t column, std::string_view text) const {
    const uint32_t begin = column == 0 ? line_.begin : line_.ends[column - 1] + 1;
    return {text.data() + begin, line_.ends[column] - begin};
  }
  int64_t count() const { return line_.columns; }
  static bool is_list(int64_t) { return false; }
  static Ready ready(size_t) { return {}; }
  static int64_t row() { return 0; }

 private:
  const ScannedLine& line_;
};

// The columns of a row of a table.
class TableColumnsOfRow {
 public:
  // `count`: with those that are not read. `ready`: by field.
  TableColumnsOfRow(const TextTable& table, int64_t row, int64_t count,
                    const std::vector<Ready>& ready)
      : table_(table), row_(row), count_(count), ready_(ready) {}
  std::string_view Text(int64_t column, std::string_view text) const {
    return table_.columns[column].Text(row_, text);
  }
  int64_t count() const { return count_; }
  bool is_list(int64_t column) const { return table_.columns[column].is_list; }
  Ready ready(size_t field) const { return ready_[field]; }
  int64_t row() const { return row_; }

 private:
  const TextTable& table_;
  const int64_t row_;
  const int64_t count_;
  const std::vector<Ready>& ready_;
};

// The columns of a record with quotes, or with a delimiter of several characters.
class SplitColumns {
 public:
  // Splits the record that begins with *line, whose ends it moves to those of the record if values
  // hold line feeds. Returns what is wrong with a quote; empty: nothing.
  std::string Split(std::string_view text, std::string_view delimiter, bool quoted,
                    ScannedLine* line) {
    columns_.clear();
    doubled_.clear();
    for (size_t at = line->begin; at <= line->end;) {
      if (!quoted || at == line->end || text[at] != '"') {
        const size_t size =
            std::min(text.substr(at, line->end - at).find(delimiter), line->end - at);
        if (quoted && size > 0 && text[at + size - 1] == '"') {
          return StrCat("column ", count() + 1,
                        ": found a quote at the end of a value that begins with none, expected "
                        "quotes around it, and two for one in it");
        }
        columns_.emplace_back(at, at + size);
        at += size + delimiter.size();
        continue;
      }
      bool doubled = false;
      const size_t close = ClosingQuote(text, at, &doubled);
      if (close != text.npos && close >= line->next) EndAt(text, text.find('\n', close), line);
      const bool closed =
          close != text.npos &&
          (close + 1 == line->end || text.substr(close + 1, delimiter.size()) == delimiter);
      if (!closed) {
        return StrCat("column ", count() + 1,
                      ": found a quote that is not closed, expected one before the delimiter");
      }
      if (doubled) doubled_.push_back(count());
      columns_.emplace_back(at + 1, close);
      at = close + 1 + delimiter.size();
    }
    return "";
  }
  // Turns each "" of a quoted value into one quote.
  void Unquote(char* text) {
    for (const int64_t column : doubled_) {
      auto& [begin, end] = columns_[column];
      end = begin + elastor::Unquote({text + begin, text + end});
    }
  }
  std::string_view Text(int64_t column, std::string_view text) const {
    const auto& [begin, end] = columns_[column];
    return {text.data() + begin, end - begin};
  }
  int64_t count() const { return static_cast<int64_t>(columns_.size()); }
  static bool is_list(int64_t) { return false; }
  static Ready ready(size_t) { return {}; }
  static int64_t row() { return 0; }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> columns_;
  std::vector<int64_t> doubled_;  // columns with "" within
};

// The columns of a row in which an item stands that is drawn.
template <typename Columns>
struct DrawnColumns {
  const Columns& row_columns;
  const std::vector<int64_t>& places;  // of what the item has
  const DrawnItems& items;
  const uint32_t item;

  std::string_view Text(int64_t column, std::string_view text) const {
    return row_columns.Text(column, text);
  }
  int64_t count() const { return row_columns.count(); }
  bool is_list(int64_t column) const { return row_columns.is_list(column); }
  Ready ready(size_t field) const { return row_columns.ready(field); }
  int64_t row() const { return row_columns.row(); }
};

template <typename Columns>
constexpr bool kIsDrawn = false;
template <typename Columns>
constexpr bool kIsDrawn<DrawnColumns<Columns>> = true;

// The columns that errors name: word n of a line is column n.
std::vector<int64_t> ColumnsOfPairs(const Schema& schema) {
  std::vector<int64_t> columns;
  const bool by_place = PairFormOf(schema) == PairForm::kPlaces;
  int64_t place = 0;
  for (const Field& field : schema.fields()) {
    const bool pair = ReadsPairs(field);
    columns.push_back(!pair ? 0 : by_place ? ++place : -1);
  }
  return columns;
}

}  // namespace

struct RowParser::Plan {
  // What side tables and histories have beside the row at hand.
  struct Beside {
    explicit Beside(const Plan& plan)
        : cells(plan.table_cells),
          missing(plan.tables.size()),
          histories_of_row(plan.schema.history_size()) {}
    void FindHistories(const ParsedChunk& chunk) {
      const size_t at = chunk.records * histories_of_row;
      histories = chunk.histories;
      histories = histories.subspan(std::min(at, histories.size()));
    }

    std::vector<std::string_view> cells;  // of all tables
    std::vector<int64_t> missing;         // by table: 1 if it lacks the row's key
    size_t histories_of_row;
    std::span<const std::string_view> histories;  // of the row, then those of the next ones
  };

  bool pairs = false;              // lines of index:value pairs, not of columns
  std::vector<std::string> names;  // of the header's columns
  std::vector<FieldPlan> fields;
  int64_t columns = 0;  // of a line
  std::string delimiter;
  bool quoted = false;
  std::vector<std::string> nulls;
  bool split_by_hash = false;
  int64_t hash_column = kWholeLine;
  std::vector<const SideTable*> tables;
  std::vector<int64_t> key_columns;  // by table
  int64_t table_cells = 0;           // of all tables
  std::vector<HistoryPlace> history_places;
  std::vector<int64_t> event_columns;  // where they are collected
  std::vector<int64_t> item_columns;   // of an item that is drawn
  bool label_is_known = false;         // as all rows of the log are positive
  Schema schema;
  Labels labels = Labels::kRequired;

  void ParseDelimited(ParsedChunk* chunk) const;
  // Returns what is ready, by field.
  std::vector<Ready> ParseTable(ParsedChunk* chunk, Taking taking) const;
  std::vector<Ready> ReadyColumns(const ParsedChunk& chunk, Taking taking) const;
  // Sets chunk->labels, where they were taken whole, and where the values of all fields are.
  // `ready`: by field; empty: nothing is.
  void FindColumns(const std::vector<Ready>& ready, ParsedChunk* chunk) const;
  void TakeLabels(const std::vector<Ready>& ready, ParsedChunk* chunk) const;
  void HashColumn(const FieldPlan& field, const TextColumn& column, const ParsedChunk& chunk,
                  std::vector<uint64_t>* ids) const;
  std::string_view WithoutNull(std::string_view text) const {
    const bool null = !nulls.empty() && std::ranges::find(nulls, text) != nulls.end();
    return null ? text.substr(text.size()) : text;
  }
  // Parses the record that begins with *line, and moves the ends of *line to its. Returns how many
  // lines it has.
  int64_t ParseRecord(ScannedLine* line, SplitColumns* columns, Beside* beside, ParsedChunk* chunk,
                      RowBuilder* row) const;
  // Ends the row that the columns have made, and adds its negatives.
  template <typename Columns>
  void EndRow(const Columns& columns, int64_t lines, Beside* beside, ParsedChunk* chunk,
              RowBuilder* row) const;
  void HashRecord(std::string_view text, RowBuilder* row) const;
  // Adds the negatives of the row that the columns have made.
  template <typename Columns>
  void AddNegatives(const Columns& columns, const RecordDraws& draws, Beside* beside,
                    ParsedChunk* chunk, RowBuilder* row) const;
  template <typename Columns>
  void ParseColumns(const Columns& columns, std::string_view line, Beside* beside,
                    RowBuilder* row) const;
  template <typename Columns>
  std::string_view ValueOf(const Columns& columns, int64_t column, const RowBuilder& row) const;
  template <typename Columns>
  std::string_view ValueOf(const DrawnColumns<Columns>& columns, int64_t column,
                           const RowBuilder& row) const;
  template <typename Columns>
  void LookUp(const Columns& columns, const RowBuilder& row, Beside* beside) const;
  std::string CountHint(std::string_view line, int64_t found) const;
  std::string ValueHint(const FieldPlan& field, std::string_view text, bool first_line) const;
  std::string CellHint(int64_t column) const;
  void ParsePairLines(ParsedChunk* chunk) const;
};

RowParser::RowParser(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {
  for (const FieldPlan& field : plan_->fields) {
    numeric_ += field.type == Field::NUMERIC;
    single_ += field.type == Field::CATEGORICAL;
    multi_ += field.type == Field::MULTI_HOT || field.type == Field::SEQUENCE;
  }
}

RowParser::~RowParser() = default;

const std::vector<std::string>& RowParser::nulls() const { return plan_->nulls; }

StatusOr<std::unique_ptr<RowParser>> RowParser::Create(const Schema& schema,
                                                       std::string_view header,
                                                       const std::string& source, Labels labels,
                                                       const SideTables& tables, Collect collect) {
  auto plan = std::make_unique<Plan>();
  plan->schema = schema;
  plan->labels = labels;
  plan->pairs = SourceOf(schema.layout()) == RowSource::kPairs;
  plan->delimiter = DelimiterOf(schema);
  plan->quoted = schema.quoted();
  plan->nulls.assign(schema.null().begin(), schema.null().end());
  plan->split_by_hash = schema.split().by() == SplitPlan::HASH;
  if (schema.header()) {
    ELASTOR_ASSIGN_OR_RETURN(plan->names, ColumnNames(schema, header, source));
  }
  RowColumns columns;
  if (plan->pairs) {
    columns.of_fields = ColumnsOfPairs(schema);
  } else {
    const Events events = labels == Labels::kRequired ? Events::kThere : Events::kNone;
    ELASTOR_ASSIGN_OR_RETURN(columns, ColumnsOfRow(schema, tables, plan->names, source, events));
  }
  for (const SideTable& table : tables) {
    plan->tables.push_back(&table);
    plan->table_cells += static_cast<int64_t>(table.columns().size());
  }
  plan->key_columns = columns.of_keys;
  plan->history_places = HistoryPlaces(schema);
  if (collect == Collect::kHistories) plan->event_columns = columns.of_events;
  if (collect == Collect::kNegatives) plan->event_columns = columns.of_draws;
  if (!columns.of_draws.empty()) {
    plan->item_columns.assign(columns.of_draws.begin() + 1, columns.of_draws.end());
  }
  plan->label_is_known = schema.has_negatives();
  for (int i = 0; i < schema.fields_size(); ++i) {
    const int64_t column = columns.of_fields[i];
    const bool reads_history = column <= kFirstCell - plan->table_cells;
    if (schema.fields(i).type() == Field::LABEL) plan->label_is_known = false;
    if (reads_history && collect != Collect::kNothing) continue;
    plan->fields.emplace_back(schema.fields(i), column);
    plan->columns = std::max(plan->columns, column + 1);
    if (schema.fields(i).name() == schema.split().hash_field()) plan->hash_column = column;
  }
  if (schema.header()) plan->columns = static_cast<int64_t>(plan->names.size());
  return std::unique_ptr<RowParser>(new RowParser(std::move(plan)));
}

Status RowParser::CheckHeader(std::string_view header, const std::string& source) const {
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ColumnNames(plan_->schema, header, source));
  for (size_t i = 0; i < std::max(names.size(), plan_->names.size()); ++i) {
    const std::string found = i < names.size() ? Shown(names[i]) : "none";
    const std::string expected = i < plan_->names.size() ? Shown(plan_->names[i]) : "none";
    if (found == expected) continue;
    return UserError(StrCat(HeaderPlace(plan_->schema, source), "column ", i + 1,
                            " of the header: found ", found, ", expected ", expected,
                            " (as in the first file)"));
  }
  return OkStatus();
}

void RowParser::Parse(ParsedChunk* chunk, Taking taking) const {
  CHECK_LT(chunk->text.size(), kMostTextBytes);
  chunk->made.clear();
  chunk->outside.clear();
  chunk->missing_keys.assign(plan_->tables.size(), 0);
  chunk->lines = chunk->records = chunk->rows = chunk->bad_rows = 0;
  chunk->labels.clear();
  chunk->numeric.clear();
  chunk->ids.clear();
  chunk->record_of_row.clear();
  chunk->bag_ends.clear();
  chunk->bags.clear();
  chunk->weights.clear();
  chunk->groups.clear();
  chunk->times.clear();
  chunk->splits.clear();
  chunk->split_hashes.clear();
  chunk->events.clear();
  chunk->bad.clear();
  chunk->bad_records.clear();
  std::vector<Ready> ready;
  if (plan_->pairs) {
    plan_->ParsePairLines(chunk);
  } else if (chunk->table.rows > 0) {
    ready = plan_->ParseTable(chunk, taking);
  } else {
    plan_->ParseDelimited(chunk);
  }
  plan_->FindColumns(ready, chunk);
  CHECK_LE(chunk->text.size() + chunk->made.size(), size_t{std::numeric_limits<uint32_t>::max()});
}

void RowParser::Plan::ParseDelimited(ParsedChunk* chunk) const {
  RowBuilder row(fields, labels == Labels::kOptional, chunk);
  const bool plain = delimiter.size() == 1;
  LineScanner scanner(chunk->text, plain ? delimiter[0] : '\n');
  ScannedLine line;
  line.ends.resize(columns);
  SplitColumns split_columns;
  Beside beside(*this);
  const bool quotes = quoted && chunk->text.find('"') != std::string::npos;
  while (scanner.Next(&line)) {
    beside.FindHistories(*chunk);
    const std::string_view text = row.Text(line.begin, line.end);
    int64_t lines = 1;
    const bool split = !plain || (quotes && text.find('"') != std::string_view::npos);
    if (split) {
      lines = ParseRecord(&line, &split_columns, &beside, chunk, &row);
      if (lines > 1) scanner.Skip(line.next);
    } else {
      HashRecord(text, &row);
      ParseColumns(PlainColumns(line), text, &beside, &row);
    }
    if (split) {
      EndRow(split_columns, lines, &beside, chunk, &row);
    } else {
      EndRow(PlainColumns(line), lines, &beside, chunk, &row);
    }
  }
}

template <typename Columns>
void RowParser::Plan::EndRow(const Columns& columns, int64_t lines, Beside* beside,
                             ParsedChunk* chunk, RowBuilder* row) const {
  const size_t record = chunk->records;
  const int64_t rows = chunk->rows;
  row->End(lines);
  if (chunk->rows == rows) return;
  for (size_t i = 0; i < tables.size(); ++i) chunk->missing_keys[i] += beside->missing[i];
  if (record >= chunk->draws.size()) return;
  const RecordDraws& draws = chunk->draws[record];
  AddNegatives(columns, draws, beside, chunk, row);
  chunk->splits.resize(chunk->rows, draws.split);
}

std::vector<Ready> RowParser::Plan::ReadyColumns(const ParsedChunk& chunk, Taking taking) const {
  std::vector<Ready> ready(fields.size());
  // The rows of negatives are made of texts.
  const bool whole = taking == Taking::kColumns && chunk.draws.empty();
  bool whole_labels = whole;
  const bool may_lack_label =
      labels == Labels::kOptional || std::ranges::count(fields, Field::LABEL, &FieldPlan::type) > 1;
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldPlan& field = fields[i];
    if (field.column < 0) {
      whole_labels &= field.type != Field::LABEL;
      continue;
    }
    const TextColumn& column = chunk.table.columns[field.column];
    if (!column.numbers.empty()) ready[i].numbers = column.numbers.data();
    if (!column.integers.empty()) ready[i].integers = column.integers.data();
    if (field.type == Field::LABEL) {
      whole_labels &=
          !column.numbers.empty() && std::ranges::all_of(column.numbers, [&](double number) {
            return IsLabel(field, number) || (may_lack_label && std::isnan(number));
          });
    }
    ready[i].whole = whole && (field.type == Field::NUMERIC ? !column.numbers.empty()
                               : field.type == Field::CATEGORICAL
                                   ? field.transform == Field::NONE && TakesText(field.encoding)
                                   : false);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].type == Field::LABEL) ready[i].whole = whole_labels;
  }
  return ready;
}

std::vector<Ready> RowParser::Plan::ParseTable(ParsedChunk* chunk, Taking taking) const {
  std::vector<Ready> ready = ReadyColumns(*chunk, taking);
  const bool all_whole = std::ranges::all_of(ready, &Ready::whole);
  if (all_whole && !label_is_known && !split_by_hash && event_columns.empty() && tables.empty()) {
    chunk->lines = chunk->records = chunk->rows = chunk->table.rows;
    return ready;
  }
  std::vector<FieldPlan> by_row;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!ready[i].whole) by_row.push_back(fields[i]);
  }
  RowBuilder row(by_row, labels == Labels::kOptional, chunk);
  Beside beside(*this);
  for (int64_t i = 0; i < chunk->table.rows; ++i) {
    beside.FindHistories(*chunk);
    const TableColumnsOfRow found(chunk->table, i, columns, ready);
    ParseColumns(found, "", &beside, &row);
    EndRow(found, 1, &beside, chunk, &row);
  }
  if (chunk->bad_rows == 0 || taking == Taking::kRows) return ready;
  auto bad = chunk->bad_records.begin();
  for (uint32_t record = 0; record < chunk->records; ++record) {
    if (bad != chunk->bad_records.end() && *bad == record) {
      ++bad;
    } else {
      chunk->record_of_row.push_back(record);
    }
  }
  return ready;
}

void RowParser::Plan::TakeLabels(const std::vector<Ready>& ready, ParsedChunk* chunk) const {
  std::vector<size_t> whole;
  for (size_t i = 0; i < ready.size(); ++i) {
    if (fields[i].type == Field::LABEL && ready[i].whole) whole.push_back(i);
  }
  if (whole.empty()) return;
  chunk->labels.resize(chunk->rows * whole.size());
  for (size_t label = 0; label < whole.size(); ++label) {
    float* to = chunk->labels.data() + label;
    for (int64_t row = 0; row < chunk->rows; ++row, to += whole.size()) {
      *to = LabelOf(fields[whole[label]], ready[whole[label]].numbers[chunk->RecordOf(row)]);
    }
  }
}

void RowParser::Plan::HashColumn(const FieldPlan& field, const TextColumn& column,
                                 const ParsedChunk& chunk, std::vector<uint64_t>* ids) const {
  ids->resize(chunk.rows);
  for (int64_t row = 0; row < chunk.rows; ++row) {
    const int64_t record = chunk.RecordOf(row);
    (*ids)[row] = column.integers.empty()
                      ? HashedId(field, WithoutNull(column.Text(record, chunk.text)))
                      : HashedId(field, DecimalText(column.integers[record]).view());
  }
}

void RowParser::Plan::FindColumns(const std::vector<Ready>& ready, ParsedChunk* chunk) const {
  TakeLabels(ready, chunk);
  const auto is_whole = [&ready](size_t field) { return !ready.empty() && ready[field].whole; };
  const auto rows_of = [&](Field::Type type) {
    int64_t count = 0;
    for (size_t i = 0; i < fields.size(); ++i) count += fields[i].type == type && !is_whole(i);
    return count;
  };
  const int64_t numeric_stride = rows_of(Field::NUMERIC);
  const int64_t single_stride = rows_of(Field::CATEGORICAL);
  const double* numeric = chunk->numeric.data();
  const uint64_t* ids = chunk->ids.data();
  chunk->numeric_columns.clear();
  chunk->single_columns.clear();
  chunk->whole_numeric.resize(fields.size());
  chunk->whole_ids.resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldPlan& field = fields[i];
    if (field.type == Field::NUMERIC) {
      ChunkColumn<double>& column = chunk->numeric_columns.emplace_back();
      if (!is_whole(i)) {
        column = {numeric++, numeric_stride};
      } else if (chunk->bad_rows == 0 && !TakesLog2(field)) {
        column = {ready[i].numbers, 1};
      } else {
        std::vector<double>& numbers = chunk->whole_numeric[i];
        numbers.resize(chunk->rows);
        const double* from = ready[i].numbers;
        if (chunk->bad_rows > 0) {
          for (int64_t row = 0; row < chunk->rows; ++row) {
            numbers[row] = ready[i].numbers[chunk->RecordOf(row)];
          }
          from = numbers.data();
        }
        if (TakesLog2(field)) Log2Transform(from, chunk->rows, numbers.data());
        column = {numbers.data(), 1};
      }
    } else if (field.type == Field::CATEGORICAL) {
      SingleColumn& column = chunk->single_columns.emplace_back();
      if (!is_whole(i)) {
        column.ids = {ids++, single_stride};
      } else if (field.encoding == Field::VOCABULARY) {
        column.texts = &chunk->table.columns[field.column];
      } else {
        std::vector<uint64_t>& hashed = chunk->whole_ids[i];
        HashColumn(field, chunk->table.columns[field.column], *chunk, &hashed);
        column.ids = {hashed.data(), 1};
      }
    }
  }
}

template <typename Columns>
void RowParser::Plan::AddNegatives(const Columns& columns, const RecordDraws& draws, Beside* beside,
                                   ParsedChunk* chunk, RowBuilder* row) const {
  for (uint32_t i = draws.begin; i < draws.end; ++i) {
    const DrawnColumns<Columns> drawn = {columns, item_columns, *chunk->items, chunk->drawn[i]};
    const int64_t rows = chunk->rows;
    row->BeginNegative(drawn.items.Text(drawn.item, 0));
    ParseColumns(drawn, std::string_view(), beside, row);
    row->EndNegative();
    if (chunk->rows == rows) continue;
    for (size_t j = 0; j < tables.size(); ++j) chunk->missing_keys[j] += beside->missing[j];
  }
}

void RowParser::Plan::HashRecord(std::string_view text, RowBuilder* row) const {
  if (!split_by_hash || hash_column != kWholeLine) return;
  row->AddSplitHash(XXH3_64bits(text.data(), text.size()));
}

int64_t RowParser::Plan::ParseRecord(ScannedLine* line, SplitColumns* columns, Beside* beside,
                                     ParsedChunk* chunk, RowBuilder* row) const {
  const uint32_t next = line->next;
  const std::string wrong = columns->Split(chunk->text, delimiter, quoted, line);
  if (!wrong.empty()) {
    const size_t end = EndOfRecord(chunk->text, line->begin, delimiter);
    EndAt(chunk->text, (end == std::string::npos ? chunk->text.size() : end) - 1, line);
  }
  const int64_t lines = 1 + std::ranges::count(row->Text(next, line->next), '\n');
  if (!wrong.empty()) {
    row->Fail(wrong);
    return lines;
  }
  const std::string_view text = row->Text(line->begin, line->end);
  HashRecord(text, row);
  columns->Unquote(chunk->text.data());
  ParseColumns(*columns, text, beside, row);
  return lines;
}

// What may be the reason when a line has not as many columns as it should.
std::string RowParser::Plan::CountHint(std::string_view line, int64_t found) const {
  if (found == 1) {
    constexpr std::string_view kDelimiters = "\t,;|";
    const auto count = [line](char c) { return std::ranges::count(line, c); };
    const char most = *std::ranges::max_element(kDelimiters, {}, count);
    return "; the delimiter is " + DelimiterText(delimiter) +
           (count(most) == 0
                ? ""
                : StrCat(", the line has ", count(most), " times ", DelimiterText({&most, 1})));
  }
  if (line.find('\r') != std::string_view::npos) return "; the line has carriage returns within";
  if (!quoted && line.find('"') != std::string_view::npos) {
    return "; values in quotes need quoted: true in the schema";
  }
  return "";
}

// The same for a value that is none of its field.
std::string RowParser::Plan::ValueHint(const FieldPlan& field, std::string_view text,
                                       bool first_line) const {
  if (!quoted && text.size() > 1 && text.front() == '"' && text.back() == '"') {
    return "; values in quotes need quoted: true in the schema";
  }
  const bool letter = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
  const bool name = text == field.name || (field.type == Field::LABEL && letter);
  if (schema.header() || !first_line || !name) return "";
  return "; a line of column names needs header: true in the schema";
}

// Where a value stands that is none of the rows' columns.
std::string RowParser::Plan::CellHint(int64_t column) const {
  int64_t cell = kFirstCell - column;
  if (cell >= table_cells) return " (history " + history_places[cell - table_cells].column + ")";
  size_t table = 0;
  while (cell >= static_cast<int64_t>(tables[table]->columns().size())) {
    cell -= static_cast<int64_t>(tables[table++]->columns().size());
  }
  return StrCat(" (column ", tables[table]->columns()[cell], " of ", tables[table]->file(), ")");
}

// The text of a column of the row; empty if it is missing.
template <typename Columns>
std::string_view RowParser::Plan::ValueOf(const Columns& columns, int64_t column,
                                          const RowBuilder& row) const {
  return WithoutNull(columns.Text(column, row.text()));
}

template <typename Columns>
std::string_view RowParser::Plan::ValueOf(const DrawnColumns<Columns>& columns, int64_t column,
                                          const RowBuilder& row) const {
  const auto place = std::ranges::find(columns.places, column);
  if (place == columns.places.end()) return ValueOf(columns.row_columns, column, row);
  return columns.items.Text(columns.item, place - columns.places.begin());
}

template <typename Columns>
void RowParser::Plan::LookUp(const Columns& columns, const RowBuilder& row, Beside* beside) const {
  std::string_view* cells = beside->cells.data();
  for (size_t i = 0; i < tables.size(); ++i) {
    beside->missing[i] = !tables[i]->Find(ValueOf(columns, key_columns[i], row), cells);
    cells += tables[i]->columns().size();
  }
}

template <typename Columns>
void RowParser::Plan::ParseColumns(const Columns& found, std::string_view line, Beside* beside,
                                   RowBuilder* row) const {
  if (found.count() != columns) {
    row->Fail(StrCat("found ", found.count(), " columns, expected ", columns,
                     CountHint(line, found.count())));
    return;
  }
  LookUp(found, *row, beside);
  if (split_by_hash && hash_column != kWholeLine) {
    const std::string_view text = hash_column < 0 ? beside->cells[kFirstCell - hash_column]
                                                  : found.Text(hash_column, row->text());
    row->AddSplitHash(XXH3_64bits(text.data(), text.size()));
  }
  const auto text_of = [&](int64_t column) {
    return column < 0 ? beside->cells[kFirstCell - column] : ValueOf(found, column, *row);
  };
  for (const int64_t column : event_columns) {
    row->AddEvent(column == kNoColumn ? std::string_view() : text_of(column));
  }
  constexpr bool drawn = kIsDrawn<Columns>;
  if (label_is_known) {
    const bool missing = labels == Labels::kOptional;
    row->AddKnownLabel(drawn ? 0.0f : missing ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldPlan& field = fields[i];
    const Ready ready = found.ready(i);
    if (ready.whole) continue;
    if (drawn && field.type == Field::LABEL) {
      row->AddKnownLabel(0);
      continue;
    }
    if (ready.numbers != nullptr) {
      if (!row->AddNumber(field, ready.numbers[found.row()])) return;
      continue;
    }
    if (ready.integers != nullptr) {
      row->AddText(field, DecimalText(ready.integers[found.row()]).view());
      continue;
    }
    const bool is_cell = field.column < 0;
    std::string_view text;
    if (kFirstCell - field.column >= table_cells) {
      const HistoryPlace& from = history_places[kFirstCell - field.column - table_cells];
      const size_t history = from.history;
      if (history < beside->histories.size()) text = beside->histories[history];
      if (row->AddHistory(field, text, from)) continue;
    } else {
      text = text_of(field.column);
      const bool is_list = !is_cell && found.is_list(field.column);
      if (is_list ? row->AddList(field, text) : row->Add(field, text)) continue;
    }
    row->Hint(is_cell ? CellHint(field.column) : ValueHint(field, text, row->at_first_line()));
    return;
  }
}

void RowParser::Plan::ParsePairLines(ParsedChunk* chunk) const {
  RowBuilder row(fields, labels == Labels::kOptional, chunk);
  PairLines pairs(schema, fields, labels == Labels::kOptional);
  for (size_t begin = 0; begin < chunk->text.size();) {
    const size_t feed = chunk->text.find('\n', begin);
    CHECK_NE(feed, std::string::npos) << "a chunk ends in a line feed";
    std::string_view line = std::string_view(chunk->text).substr(begin, feed - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    pairs.Parse(line, &row) ? row.End(1) : row.SkipLine();
    begin = feed + 1;
  }
}

}  // namespace elastor
