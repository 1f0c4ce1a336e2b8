#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/report/chart.h"
#include "launcher/sweep_report/arms.h"
#include "launcher/sweep_report/laws.h"

namespace elastor {
namespace {

constexpr size_t kMostForest = 8;  // rows of a forest plot

Figure ForestOf(const ToldMetric& metric) {
  const std::string& best = metric.arms[BestArm(metric)];
  ForestChart chart = {.title = "How far " + best + " is ahead, in " + metric.name,
                       .subtitle = {},
                       .x_title = "ahead by " + metric.name,
                       .rows = {}};
  const std::vector<ArmDifference> shown = ShownDifferences(metric);
  const bool levels = metric.arms.size() == 2;
  size_t left = 0;
  for (const ArmDifference& gain : shown) {
    if (!gain.level.empty() && !levels) continue;
    if (chart.rows.size() >= kMostForest) {
      ++left;
      continue;
    }
    ForestRow& row = chart.rows.emplace_back();
    row.name = gain.level.empty() ? "of " + metric.arms[gain.second] : "at " + gain.level;
    if (gain.level.empty() && shown.size() > 1 && levels) row.name += ", on average";
    row.value = gain.value;
    if (gain.interval) {
      row.low = gain.interval->low;
      row.high = gain.interval->high;
    }
    row.told_apart = gain.told_apart();
  }
  chart.subtitle = "95 % intervals over seeds; filled: told apart, after Holm's correction";
  if (left > 0) chart.subtitle += Format("; %zu more are in the table", left);
  return MakeFigure(std::string("lead_") + (metric.larger_is_better ? "auc" : "logloss"), chart);
}

// Numbers by their size, others as they come.
void SortValues(std::vector<std::string>* values) {
  std::vector<std::pair<double, std::string>> numbers;
  for (const std::string& value : *values) {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0') return;
    numbers.emplace_back(number, value);
  }
  std::ranges::stable_sort(numbers, {}, [](const auto& each) { return each.first; });
  for (size_t i = 0; i < numbers.size(); ++i) (*values)[i] = numbers[i].second;
}

Figure GridOf(const SweepArms& arms, const std::string& series, const SettingColumn& column) {
  GridChart chart = {.title = column.split + " " + column.name,
                     .subtitle = "mean over seeds, \u00b1 half of its 95 % interval",
                     .x_title = ShortName(arms.axes[1]),
                     .y_title = ShortName(arms.axes[0]),
                     .columns = {},
                     .rows = {},
                     .cells = {},
                     .larger_is_better = column.larger_is_better};
  chart.title[0] = static_cast<char>(std::toupper(chart.title[0]));
  if (!series.empty()) chart.title += ", " + series;
  const auto add = [](const std::string& value, std::vector<std::string>* values) {
    if (std::ranges::find(*values, value) == values->end()) values->push_back(value);
  };
  for (const Setting& setting : arms.settings) {
    if (!series.empty() && setting.series != series) continue;
    add(setting.values[0], &chart.rows);
    add(setting.values[1], &chart.columns);
  }
  SortValues(&chart.rows);
  SortValues(&chart.columns);
  chart.cells.resize(chart.rows.size() * chart.columns.size());
  for (const Setting& setting : arms.settings) {
    if (!series.empty() && setting.series != series) continue;
    const auto row = std::ranges::find(chart.rows, setting.values[0]) - chart.rows.begin();
    const auto at = std::ranges::find(chart.columns, setting.values[1]) - chart.columns.begin();
    GridCell& cell = chart.cells[row * static_cast<int64_t>(chart.columns.size()) + at];
    const SettingColumn::Mean spread = column.Of(setting);
    if (spread.count == 0) continue;
    cell.value = spread.mean;
    cell.text = Format("%.4f", spread.mean);
    if (std::isfinite(spread.half)) cell.note = Format("\u00b1%.4f", spread.half);
  }
  std::string name = "grid_" + column.split + "_" + column.name;
  if (!series.empty()) name += "_" + series;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return MakeFigure(name, chart);
}

}  // namespace

FigureGroup ForestFigures(const SweepArms& arms) {
  FigureGroup group = {.heading = "Who is ahead",
                       .caption =
                           "Right of the line the best is ahead. Runs of one seed are a "
                           "pair; where arms share no two seeds, the interval is Welch's. "
                           "All runs are measured on the same rows: the intervals are about "
                           "other seeds, not about other rows.",
                       .figures = {}};
  for (const ToldMetric& metric : arms.metrics) {
    if (!metric.comparison.overall.empty()) group.figures.push_back(ForestOf(metric));
  }
  return group;
}

FigureGroup GridFigures(const SweepArms& arms) {
  FigureGroup group = {.heading = "Both axes",
                       .caption = "The stronger the colour, the better; the best is framed.",
                       .figures = {}};
  if (arms.axes.size() != 2) return group;
  std::vector<std::string> series;
  for (const Setting& setting : arms.settings) {
    if (std::ranges::find(series, setting.series) == series.end()) series.push_back(setting.series);
  }
  for (const SettingColumn& column : ColumnsOf(arms)) {
    if (column.split != arms.split || column.name == "gAUC") continue;
    for (size_t s = 0; s < std::min(series.size(), kMostSeries); ++s) {
      group.figures.push_back(GridOf(arms, series.size() > 1 ? series[s] : "", column));
    }
  }
  return group;
}

}  // namespace elastor
