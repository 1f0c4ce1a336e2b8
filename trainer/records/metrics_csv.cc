#include "trainer/records/metrics_csv.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/base/json.h"
#include "core/report/csv.h"
#include "trainer/records/run_records.h"

namespace elastor {
namespace {

using Columns = std::vector<std::string>;

void AddColumn(const std::string& name, Columns* columns) {
  if (std::ranges::find(*columns, name) == columns->end()) columns->push_back(name);
}

template <typename Table>
void AddColumns(const Table& table, Columns* columns) {
  for (const auto& field : table) {
    if (field.column) AddColumn(field.name, columns);
  }
}

// Fields of records; what is no single number or text, histograms for one, has no column.
Columns MakeColumns() {
  Columns columns = {"event", "step", "epoch", "split", "label"};
  AddColumns(kTrainFields, &columns);
  AddColumns(kSliceFields, &columns);
  AddColumns(kEvalFields, &columns);
  AddColumns(kBinaryFields, &columns);
  AddColumns(kGroupFields, &columns);
  AddColumns(kClassFields, &columns);
  AddColumns(kSpectrumFields, &columns);
  for (const std::string kind : {"stable_rank_", "entropy_rank_"}) {
    for (const auto& field : kRankFields) AddColumn(kind + field.name, &columns);
  }
  AddColumns(kScoringFields, &columns);
  AddColumns(kNtkFields, &columns);
  for (const char* name : {"path", "base"}) AddColumn(name, &columns);
  AddColumns(kCheckpointFields, &columns);
  return columns;
}

const Columns& AllColumns() {
  static const Columns kColumns = MakeColumns();
  return kColumns;
}

std::string FieldText(const Json& record, const std::string& name) {
  const Json* field = record.find(name);
  if (field == nullptr || field->is_null()) return "";
  return CsvText(field->is_string() ? field->get<std::string>() : field->dump());
}

std::string LineOf(const Json& record) {
  std::string line;
  for (const std::string& column : AllColumns()) line += FieldText(record, column) + ",";
  line.back() = '\n';
  return line;
}

// `part` with what `whole` says of all its parts: event, split, step, label.
Json PartOf(const Json& whole, Json part) {
  for (const char* name : {"event", "split", "step", "scheduled", "label"}) {
    if (whole.contains(name) && !part.contains(name)) part[name] = whole[name];
  }
  return part;
}

std::string LinesWithSlices(const Json& record) {
  std::string lines = LineOf(record);
  if (!record.contains("slices")) return lines;
  for (const Json& slice : record["slices"]) {
    if (slice.is_object()) lines += LineOf(PartOf(record, slice));
  }
  return lines;
}

}  // namespace

std::string MetricsCsvHeader() {
  std::string line;
  for (const std::string& column : AllColumns()) line += column + ",";
  line.back() = '\n';
  return line;
}

std::string MetricsCsvLines(const std::string& record) {
  const Json json = Json::parse(record);
  if (!json.is_object()) return "";
  if (!json.contains("labels")) return LinesWithSlices(json);
  std::string lines;
  for (const Json& label : json["labels"]) {
    if (label.is_object()) lines += LinesWithSlices(PartOf(json, label));
  }
  return lines;
}

std::string MetricsCsv(const std::string& metrics) {
  std::string table = MetricsCsvHeader();
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) table += MetricsCsvLines(line);
  return table;
}

}  // namespace elastor
