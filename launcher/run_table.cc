#include "launcher/run_table.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"

namespace elastor {
namespace {

constexpr char kNone[] = "-";
constexpr size_t kBetween = 2;  // blanks

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string Metric(const std::optional<double>& value) {
  return value ? Format("%.4f", *value) : kNone;
}

std::string OrNone(const std::optional<double>& seconds) {
  return seconds ? Duration(*seconds) : kNone;
}

std::string Rate(double samples_per_s) {
  return samples_per_s > 0 ? Format("%.0f", samples_per_s) : kNone;
}

constexpr RunColumn kState = {"state", 7, [](const RunRow& row) { return row.state; }};
constexpr RunColumn kDense = {
    "dense", 10, [](const RunRow& row) { return std::to_string(row.dense_parameters); }};
constexpr RunColumn kStep = {
    "step", 15, [](const RunRow& row) { return StrCat(row.progress.step, "/", row.steps); }};
constexpr RunColumn kAuc = {"auc", 6, [](const RunRow& row) { return Metric(row.progress.auc); }};
constexpr RunColumn kLogloss = {"logloss", 7,
                                [](const RunRow& row) { return Metric(row.progress.logloss); }};
constexpr RunColumn kRate = {"samples/s", 9,
                             [](const RunRow& row) { return Rate(row.progress.samples_per_s); }};
constexpr RunColumn kTime = {"time", 7, [](const RunRow& row) { return OrNone(row.seconds); }};
constexpr RunColumn kLeft = {"left", 7, [](const RunRow& row) { return OrNone(SecondsLeft(row)); }};
constexpr RunColumn kAttempts = {"attempts", 8,
                                 [](const RunRow& row) { return std::to_string(row.attempts); }};
constexpr RunColumn kNote = {"", 0, [](const RunRow& row) { return row.note; }};

constexpr std::array kStatusColumns = {kState, kDense, kStep, kAuc,      kLogloss,
                                       kRate,  kTime,  kLeft, kAttempts, kNote};
constexpr std::array kLiveColumns = {kState, kStep, kAuc, kRate, kLeft};

std::string Trimmed(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::optional<double> SecondsLeft(const RunRow& row) {
  const RunProgress& progress = row.progress;
  if (row.state != "running" || progress.samples_per_s <= 0 || row.steps == 0) return std::nullopt;
  const double share =
      static_cast<double>(row.steps - progress.step) / static_cast<double>(row.steps);
  return std::max(0.0, share) * static_cast<double>(row.samples) / progress.samples_per_s;
}

std::span<const RunColumn> StatusColumns() { return kStatusColumns; }
std::span<const RunColumn> LiveColumns() { return kLiveColumns; }

std::string HeadingLine(std::span<const RunColumn> columns, size_t name_width) {
  std::string line = Padded("run", name_width);
  for (const RunColumn& column : columns) {
    line += std::string(kBetween, ' ') + Padded(column.heading, column.width);
  }
  return Trimmed(line);
}

std::string RowLine(const RunRow& row, std::span<const RunColumn> columns, size_t name_width) {
  std::string line = Padded(Elided(row.run, name_width), name_width);
  for (const RunColumn& column : columns) {
    line += std::string(kBetween, ' ') + Padded(column.value(row), column.width);
  }
  return Trimmed(line);
}

size_t WidthBesideName(std::span<const RunColumn> columns) {
  size_t width = 0;
  for (const RunColumn& column : columns) width += kBetween + column.width;
  return width;
}

std::string Duration(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return Format("%.1f s", seconds);
  if (seconds < 2 * kHour) return Format("%.0f min", seconds / kMinute);
  return Format("%.1f h", seconds / kHour);
}

std::string Elided(const std::string& text, size_t width) {
  constexpr char kDots[] = "...";
  constexpr size_t kDotBytes = sizeof(kDots) - 1;
  if (text.size() <= width) return text;
  if (width <= kDotBytes) return text.substr(0, width);
  const size_t end = (width - kDotBytes) / 2;
  return text.substr(0, width - kDotBytes - end) + kDots + text.substr(text.size() - end);
}

}  // namespace elastor
