#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/csv.h"
#include "launcher/sweep_report/arms.h"

namespace elastor {
namespace {

constexpr size_t kMostTableRows = 200;

double MeanOver(const Setting& setting, const std::function<double(const SweepRun&)>& value) {
  double sum = 0;
  for (const SweepRun* run : setting.runs) sum += value(*run);
  return sum / static_cast<double>(std::max<size_t>(setting.runs.size(), 1));
}
double SecondsOf(const SweepRun& run) { return run.status.result->wall_s; }
double StepsOf(const SweepRun& run) { return static_cast<double>(run.status.result->steps); }

std::string PText(double p) { return p < 0.0001 ? "< 0.0001" : Format("%.4f", p); }

Cell PCell(const std::optional<double>& p) {
  return p ? NumberCell(PText(*p), *p) : Cell{.text = "", .number = true};
}

std::string Signed(double value) {
  return (value < 0 ? "\u2212" : "+") + Format("%.5f", std::abs(value));
}

}  // namespace

std::string SettingTable(const SweepArms& arms) {
  const std::vector<SettingColumn> columns = ColumnsOf(arms);
  const bool tuned =
      std::ranges::any_of(arms.settings, [](const Setting& each) { return !each.tuned.empty(); });
  std::vector<Cell> headings = {Heading("setting"), Heading("seeds", true)};
  for (const SettingColumn& column : columns)
    headings.push_back(Heading(column.split + " " + column.name, true));
  for (const char* name : {"parameters", "multiply-adds", "steps", "seconds"}) {
    headings.push_back(Heading(name, true));
  }
  if (tuned) headings.push_back(Heading("tuned", true));
  std::vector<double> best;
  for (const SettingColumn& column : columns) {
    double at = NAN;
    for (const Setting& setting : arms.settings) {
      const double mean = column.Of(setting).mean;
      if (std::isnan(at) || (column.larger_is_better ? mean > at : mean < at)) at = mean;
    }
    best.push_back(at);
  }
  std::vector<std::vector<Cell>> rows;
  for (const Setting& setting : arms.settings) {
    if (setting.runs.empty() || rows.size() >= kMostTableRows) continue;
    std::vector<Cell>& row = rows.emplace_back();
    row.push_back({.text = setting.name});
    const auto done = static_cast<int64_t>(setting.runs.size());
    row.push_back(NumberCell(
        done == setting.planned ? std::to_string(done) : StrCat(done, " of ", setting.planned),
        static_cast<double>(done)));
    for (size_t c = 0; c < columns.size(); ++c) {
      const SettingColumn::Mean spread = columns[c].Of(setting);
      if (spread.count == 0) {
        row.push_back({.text = "", .number = true});
        continue;
      }
      std::string text = Format("%.4f", spread.mean);
      if (std::isfinite(spread.half)) text += Format(" \u00b1 %.4f", spread.half);
      row.push_back(NumberCell(text, spread.mean));
      if (spread.mean == best[c]) row.back().html = "<strong>" + Escaped(text) + "</strong>";
    }
    const PlannedRun& plan = setting.runs[0]->plan;
    for (const int64_t count : {plan.dense_parameters, plan.multiply_adds}) {
      const auto value = static_cast<double>(count);
      row.push_back(NumberCell(NumberText(value, 0), value));
    }
    const double steps = MeanOver(setting, StepsOf), seconds = MeanOver(setting, SecondsOf);
    row.push_back(NumberCell(NumberText(steps, 0), steps));
    row.push_back(NumberCell(Format("%.1f", seconds), seconds));
    if (tuned) row.push_back({.text = setting.tuned, .number = true});
  }
  if (rows.empty()) return "";
  return Table(
      "Means over seeds \u00b1 half of their 95 % interval (Student's, over seeds); the best of a "
      "column is bold. Parameters are the dense ones, seconds those of a whole run. All are in "
      "settings.csv.",
      headings, rows, /*sortable=*/true);
}

std::string DifferenceTable(const SweepArms& arms) {
  std::vector<std::vector<Cell>> rows;
  size_t pairs = 0;
  for (const ToldMetric& metric : arms.metrics) {
    pairs = std::max(pairs, metric.comparison.overall.size());
    for (const ArmDifference& gain : ShownDifferences(metric)) {
      if (rows.size() >= kMostTableRows) break;
      std::vector<Cell>& row = rows.emplace_back();
      row.push_back({.text = metric.name});
      row.push_back({.text = metric.arms[gain.first]});
      row.push_back({.text = metric.arms[gain.second]});
      row.push_back({.text = gain.level.empty() ? "all" : gain.level});
      row.push_back(NumberCell(Signed(gain.value), gain.value));
      row.push_back({.text = gain.interval ? "[" + Signed(gain.interval->low) + ", " +
                                                 Signed(gain.interval->high) + "]"
                                           : "",
                     .number = true});
      row.push_back(NumberCell(std::to_string(gain.seeds), static_cast<double>(gain.seeds)));
      row.push_back(PCell(gain.p));
      row.push_back(PCell(gain.holm));
      row.push_back({.html = !gain.told_apart() ? std::string("not told apart")
                             : gain.value > 0   ? "<span class=\"yes\">ahead</span>"
                                                : "<span class=\"no\">behind</span>"});
    }
  }
  if (rows.empty()) return "";
  return Table(
      StrCat("The best arm of each metric against every other, on the ", arms.split,
             " split; a positive difference is a gain. Intervals are 95 %, each by itself. The "
             "verdict follows p after Holm's correction for ",
             pairs == 1 ? "the one pair" : StrCat("all ", pairs, " pairs"),
             " of a metric, and for all pairs and levels where single levels are compared. All "
             "pairs are in differences.csv."),
      {Heading("metric"), Heading("best"), Heading("against"), Heading("at"),
       Heading("ahead by", true), Heading("95 % interval", true), Heading("seeds", true),
       Heading("p", true), Heading("p, Holm", true), Heading("verdict")},
      rows, /*sortable=*/false);
}

std::string SettingsCsv(const SweepArms& arms) {
  const std::vector<SettingColumn> columns = ColumnsOf(arms);
  std::vector<std::string> head = {"setting",       "series", "level", "runs",  "dense_parameters",
                                   "multiply_adds", "tuned",  "steps", "wall_s"};
  for (const SettingColumn& column : columns) {
    const std::string name = column.split + "_" + LowerCase(column.name);
    head.insert(head.end(), {name, name + "_half_width"});
  }
  std::string text = Join(head, ",") + "\n";
  for (const Setting& setting : arms.settings) {
    if (setting.runs.empty()) continue;
    const PlannedRun& plan = setting.runs[0]->plan;
    std::vector<std::string> line = {CsvText(setting.name),
                                     CsvText(setting.series),
                                     CsvText(setting.level),
                                     std::to_string(setting.runs.size()),
                                     std::to_string(plan.dense_parameters),
                                     std::to_string(plan.multiply_adds),
                                     CsvText(setting.tuned),
                                     CsvNumber(MeanOver(setting, StepsOf)),
                                     CsvNumber(MeanOver(setting, SecondsOf))};
    for (const SettingColumn& column : columns) {
      const SettingColumn::Mean spread = column.Of(setting);
      line.insert(line.end(), {CsvNumber(spread.mean), CsvNumber(spread.half)});
    }
    text += Join(line, ",") + "\n";
  }
  return text;
}

std::string DifferencesCsv(const SweepArms& arms) {
  std::string text = "metric,split,first,second,level,seeds,paired,difference,low,high,p,p_holm\n";
  for (const ToldMetric& metric : arms.metrics) {
    for (const auto* list : {&metric.comparison.overall, &metric.comparison.by_level}) {
      for (const ArmDifference& each : *list) {
        text += Join({CsvText(LowerCase(metric.name)), CsvText(arms.split),
                      CsvText(metric.arms[each.first]), CsvText(metric.arms[each.second]),
                      CsvText(each.level), std::to_string(each.seeds), each.paired ? "yes" : "no",
                      CsvNumber(each.value), each.interval ? CsvNumber(each.interval->low) : "",
                      each.interval ? CsvNumber(each.interval->high) : "",
                      each.p ? CsvNumber(*each.p) : "", each.holm ? CsvNumber(*each.holm) : ""},
                     ",") +
                "\n";
      }
    }
  }
  return text;
}

}  // namespace elastor
