#include "trainer/records/metrics_csv.h"

#include <sstream>

#include "core/base/json_entry.h"
#include "core/report/csv.h"
#include "nlohmann/json.hpp"

namespace elastor {
namespace {

// Fields of records; what is no single number or text, histograms for one, has no column.
constexpr const char* kColumns[] = {
    "event", "step", "epoch", "split", "label",
    // train
    "loss", "l2", "learning_rate", "gradient_norm", "samples_per_s",
    // eval; the first three of a slice
    "field", "id", "value", "scheduled", "rows", "positives", "auc", "logloss",
    "normalized_entropy", "calibration", "gauc", "gauc_groups", "label_count", "accuracy",
    "bits_per_label",
    // spectrum
    "stage", "samples", "max_rank", "stable_rank_mean", "stable_rank_stddev", "entropy_rank_mean",
    "entropy_rank_stddev",
    // scoring
    "matrices",
    // ntk
    "layer", "outputs", "parameters", "lambda_max", "lambda_min", "condition_number", "rank",
    // checkpoint
    "path", "base", "digest", "blocked_s", "write_s"};

std::string FieldText(const Json& record, const char* name) {
  const auto field = record.find(name);
  if (field == record.end() || field->is_null()) return "";
  return CsvText(field->is_string() ? field->get<std::string>() : field->dump());
}

std::string LineOf(const Json& record) {
  std::string line;
  for (const char* column : kColumns) line += FieldText(record, column) + ",";
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
  for (const char* column : kColumns) line += std::string(column) + ",";
  line.back() = '\n';
  return line;
}

std::string MetricsCsvLines(const std::string& record) {
  if (NestsTooDeep(record)) return "";
  const Json json = Json::parse(record, nullptr, /*allow_exceptions=*/false);
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
