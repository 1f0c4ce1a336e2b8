#include "launcher/sweep_status.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <span>

#include "core/base/file.h"
#include "launcher/folder_lock.h"

namespace elastor {
namespace {

std::string Formatted(const char* format, double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// The shortest digits that are the number; empty: none.
std::string Digits(const std::optional<double>& value) {
  if (!value) return "";
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), *value).ptr};
}

// As RFC 4180 has it.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string Line(const std::vector<std::string>& values) {
  std::string line;
  for (const std::string& value : values) {
    if (&value != &values.front()) line += ',';
    line += Quoted(value);
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

}  // namespace

RunRow RowOf(const PlannedRun& run, const RunStatus& status, const std::string& state) {
  RunRow row = {.run = run.folder,
                .state = state,
                .dense_parameters = run.dense_parameters,
                .steps = run.steps,
                .samples = run.samples,
                .attempts = status.attempts.started};
  if (status.result) {
    const RunResult& result = *status.result;
    row.progress = {result.steps, result.samples_per_s, result.auc, result.logloss};
    row.seconds = result.wall_s;
  }
  if (state == "failed") {
    row.note = CauseOfAttempt(status.attempts.exit_code) + ": " + status.attempts.last_line;
  }
  return row;
}

RunStatus ReadStatus(const PlannedRun& run, const SweepFiles& files) {
  RunStatus status;
  status.result = ReadResult(files.Run(run.folder));
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
  return table + "sweep " + plan.name + ": " + std::to_string(plan.runs.size()) + " runs, " +
         std::to_string(done) + " done, " + std::to_string(running) + " running, " +
         std::to_string(failed) + " failed; " +
         (launcher.empty() ? "no launcher is at work" : launcher + " is at work") + "\n";
}

Status WriteTable(const Plan& plan, const SweepFiles& files) {
  std::vector<std::string> names = {"folder"};
  names.insert(names.end(), plan.columns.begin(), plan.columns.end());
  for (const char* name :
       {"ranks", "threads", "dense_parameters", "embedding_parameters", "multiply_adds", "state",
        "exit_code", "steps", "rows", "auc", "logloss", "gauc", "state_digest", "samples", "wall_s",
        "samples_per_s", "peak_memory_bytes", "attempts"}) {
    names.push_back(name);
  }
  std::string text = Line(names);
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    const RunResult result = status.result.value_or(RunResult{});
    const bool done = status.result.has_value();
    const bool failed = status.state == RunState::kFailed;
    std::vector<std::string> values = {run.folder};
    values.insert(values.end(), run.columns.begin(), run.columns.end());
    for (std::string value :
         {std::to_string(run.ranks), std::to_string(run.threads),
          std::to_string(run.dense_parameters), std::to_string(run.embedding_parameters),
          std::to_string(run.multiply_adds), StateName(status, false),
          done     ? "0"
          : failed ? std::to_string(status.attempts.exit_code)
                   : "",
          done ? std::to_string(result.steps) : "", done ? std::to_string(result.rows) : "",
          Digits(result.auc), Digits(result.logloss), Digits(result.gauc), result.state_digest,
          done ? std::to_string(run.samples) : "", done ? Formatted("%.3f", result.wall_s) : "",
          done ? Formatted("%.0f", result.samples_per_s) : "",
          done ? std::to_string(result.peak_memory_bytes) : "",
          std::to_string(status.attempts.started)}) {
      values.push_back(std::move(value));
    }
    text += Line(values);
  }
  return WriteFileAtomically(files.Table(), text);
}

std::string Metrics(const RunResult& result) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (!value) return;
    std::array<char, 32> part;
    std::snprintf(part.data(), part.size(), "%s%s %.4f", text.empty() ? "" : "  ", name, *value);
    text += part.data();
  };
  add("auc", result.auc);
  add("logloss", result.logloss);
  return text;
}

}  // namespace elastor
