#include "launcher/sweep_status.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/report/csv.h"
#include "launcher/folder_lock.h"
#include "trainer/records/progress_reader.h"

namespace elastor {
namespace {

std::string Digits(const std::optional<double>& value) { return value ? CsvNumber(*value) : ""; }

std::string Line(const std::vector<std::string>& values) {
  std::string line;
  for (const std::string& value : values) {
    if (&value != &values.front()) line += ',';
    line += CsvText(value);
  }
  return line + "\n";
}

// `running`: whether a launcher is at work, whose open attempts are running.
std::string StateName(const RunStatus& status, bool running) {
  if (status.state == RunState::kDone) return "done";
  if (running && status.attempts.open) return "running";
  if (status.state == RunState::kFailed) return "failed";
  return status.state == RunState::kCutOff ? "cut off" : "waiting";
}

// One run in the table.
struct TableRow {
  const PlannedRun* run;
  const RunStatus* status;
  const Summary* result;  // null: the run is not done
};

// A column of the table. The text is empty where the run has no such figure yet.
struct Column {
  const char* name;
  std::function<std::string(const TableRow& row)> text;
};

std::string IfDone(const TableRow& row, int64_t Summary::*count) {
  return row.result ? std::to_string(row.result->*count) : "";
}

std::string ExitCode(const TableRow& row) {
  if (row.result) return "0";
  return row.status->state == RunState::kFailed ? std::to_string(row.status->attempts.exit_code)
                                                : "";
}

const Column kFirstColumns[] = {
    {"ranks", [](const TableRow& row) { return std::to_string(row.run->ranks); }},
    {"threads", [](const TableRow& row) { return std::to_string(row.run->threads); }},
    {"dense_parameters",
     [](const TableRow& row) { return std::to_string(row.run->dense_parameters); }},
    {"embedding_parameters",
     [](const TableRow& row) { return std::to_string(row.run->embedding_parameters); }},
    {"multiply_adds", [](const TableRow& row) { return std::to_string(row.run->multiply_adds); }},
    {"state", [](const TableRow& row) { return StateName(*row.status, false); }},
    {"exit_code", ExitCode},
    {"steps", [](const TableRow& row) { return IfDone(row, &Summary::steps); }},
    {"split", [](const TableRow& row) { return row.result ? row.result->split : ""; }},
    {"rows", [](const TableRow& row) { return IfDone(row, &Summary::rows); }},
};

// Behind the metrics.
const Column kLastColumns[] = {
    {"state_digest",
     [](const TableRow& row) { return row.result ? row.result->state_digest : std::string(); }},
    {"samples",
     [](const TableRow& row) { return row.result ? std::to_string(row.run->samples) : ""; }},
    {"wall_s",
     [](const TableRow& row) { return row.result ? Format("%.3f", row.result->wall_s) : ""; }},
    {"samples_per_s",
     [](const TableRow& row) {
       return row.result ? Format("%.0f", row.result->samples_per_s) : "";
     }},
    {"peak_memory_bytes",
     [](const TableRow& row) { return IfDone(row, &Summary::peak_memory_bytes); }},
    {"attempts", [](const TableRow& row) { return std::to_string(row.status->attempts.started); }},
};

// The metrics of summaries (trainer/records/metric_values.h).
template <typename Table>
void AddMetricColumns(const Table& table, std::vector<Column>* columns) {
  for (const auto& field : table) {
    if (!field.in_summary) continue;
    columns->push_back({field.name, [&field](const TableRow& row) {
                          return row.result ? Digits(field.Number(row.result->metrics)) : "";
                        }});
  }
}

std::vector<Column> Columns() {
  std::vector<Column> columns(std::begin(kFirstColumns), std::end(kFirstColumns));
  AddMetricColumns(kBinaryFields, &columns);
  AddMetricColumns(kGroupFields, &columns);
  columns.insert(columns.end(), std::begin(kLastColumns), std::end(kLastColumns));
  return columns;
}

}  // namespace

RunRow RowOf(const PlannedRun& run, const RunStatus& status, const std::string& state) {
  RunRow row = {.run = run.folder,
                .state = state,
                .dense_parameters = run.dense_parameters,
                .steps = run.steps,
                .samples = run.samples,
                .attempts = status.attempts.started};
  if (status.result) {
    const Summary& result = *status.result;
    row.progress = {result.steps, result.samples_per_s, result.metrics.auc,
                    Finite(result.metrics.logloss)};
    row.seconds = result.wall_s;
  }
  row.note = status.mistake;
  if (state == "failed") {
    row.note = CauseOfAttempt(status.attempts.exit_code) + ": " + status.attempts.last_line;
  }
  return row;
}

RunStatus ReadStatus(const PlannedRun& run, const SweepFiles& files) {
  RunStatus status;
  if (StatusOr<std::optional<Summary>> result = ReadOwnResult(files, run.folder); result.ok()) {
    status.result = std::move(*result);
  } else {
    status.mistake = result.status().message();
  }
  status.attempts = ReadAttempts(files.Attempts(run.folder));
  status.state = StateOf(status.attempts, status.result.has_value());
  return status;
}

std::string StatusTable(const Plan& plan, const SweepFiles& files,
                        const std::map<std::string, std::string>& jobs) {
  const std::string launcher = WorkingLauncher(files);
  size_t width = 0;
  for (const PlannedRun& run : plan.runs) width = std::max(width, run.folder.size());
  const std::span<const RunColumn> columns = StatusColumns();
  std::string table = HeadingLine(columns, width) + "\n";
  int done = 0, failed = 0, running = 0;
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    const auto job = jobs.find(run.folder);
    const std::string in_slurm =
        status.result || job == jobs.end() ? "" : job->second.substr(0, job->second.find(' '));
    const std::string state = in_slurm.empty() ? StateName(status, !launcher.empty()) : in_slurm;
    done += state == "done";
    failed += state == "failed";
    running += state == "running";
    RunRow row = RowOf(run, status, state);
    if (!in_slurm.empty()) row.note = job->second;
    if (!status.result && status.attempts.started > 0) {
      row.progress = ProgressReader(files.Run(run.folder)).Read();
    }
    table += RowLine(row, columns, width) + "\n";
  }
  return StrCat(table, "sweep ", plan.name, ": ", plan.runs.size(), " runs, ", done, " done, ",
                running, " running, ", failed, " failed; ",
                launcher.empty() ? "no launcher is at work" : launcher + " is at work", "\n");
}

Status WriteTable(const Plan& plan, const SweepFiles& files) {
  const std::vector<Column> columns = Columns();
  std::vector<std::string> names = {"folder"};
  names.insert(names.end(), plan.columns.begin(), plan.columns.end());
  for (const Column& column : columns) names.push_back(column.name);
  std::string text = Line(names);
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    const TableRow row = {&run, &status, status.result ? &*status.result : nullptr};
    std::vector<std::string> values = {run.folder};
    values.insert(values.end(), run.columns.begin(), run.columns.end());
    for (const Column& column : columns) values.push_back(column.text(row));
    text += Line(values);
  }
  return WriteFileAtomically(files.Table(), text);
}

std::string Metrics(const Summary& result) {
  std::string text;
  for (const auto& field : kBinaryFields) {
    const std::optional<double> value = field.Number(result.metrics);
    if (field.word == nullptr || !value) continue;
    text += Format("%s%s %.4f", text.empty() ? "" : "  ", field.word, *value);
  }
  return text;
}

}  // namespace elastor
