#include "launcher/sweep_report/trials.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/chart.h"
#include "core/report/csv.h"
#include "launcher/sweep_report/arms.h"
#include "launcher/tuning.h"

namespace elastor {
namespace {

constexpr size_t kMostTuned = 12;    // pictures
constexpr size_t kMostTrials = 300;  // rows of the table

// A trial's configuration and what was tried.
struct Tried {
  std::vector<std::string> key;
  std::string name;
  std::vector<std::string> values;
  const SweepRun* run = nullptr;
  bool chosen = false;
};

std::vector<Tried> TrialsOf(const SweepData& data) {
  std::vector<size_t> own;  // columns of a configuration
  for (size_t c = 0; c < data.columns.size(); ++c) {
    if (data.columns[c] != kSeedColumn && !data.IsOfTuning(c)) own.push_back(c);
  }
  const std::vector<size_t> tuned = data.TunedColumns();
  const auto of = [](const SweepRun& run, const std::vector<size_t>& columns) {
    std::vector<std::string> values;
    for (const size_t c : columns) values.push_back(run.plan.columns[c]);
    return values;
  };
  std::set<std::pair<std::vector<std::string>, std::vector<std::string>>> chosen;
  for (const SweepRun& run : data.runs) chosen.emplace(of(run, own), of(run, tuned));
  std::map<std::vector<std::string>, int64_t> most_steps;
  std::vector<Tried> trials;
  for (const SweepRun& run : data.trials) {
    Tried& tried = trials.emplace_back();
    tried.key = of(run, own);
    tried.values = of(run, tuned);
    tried.run = &run;
    tried.chosen = chosen.contains({tried.key, tried.values});
    most_steps[tried.key] = std::max(most_steps[tried.key], run.plan.steps);
    std::vector<std::string> parts;
    for (const bool labels : {true, false}) {
      for (size_t k = 0; k < own.size(); ++k) {
        if (IsLabel(data.columns[own[k]]) != labels || tried.key[k].empty()) continue;
        if (labels && !parts.empty() && parts.back() == tried.key[k]) continue;
        parts.push_back(labels ? tried.key[k]
                               : ShortName(data.columns[own[k]]) + " " + tried.key[k]);
      }
      if (!parts.empty()) break;
    }
    tried.name = Join(parts, ", ");
  }
  for (Tried& tried : trials) {
    tried.chosen = tried.chosen && tried.run->plan.steps == most_steps[tried.key];
  }
  return trials;
}

// The trials of each configuration, in the order of the plan.
std::vector<std::vector<Tried>> Configurations(const SweepData& data) {
  std::vector<std::vector<Tried>> configurations;
  for (Tried& tried : TrialsOf(data)) {
    const auto same = [&](const std::vector<Tried>& each) { return each[0].key == tried.key; };
    auto found = std::ranges::find_if(configurations, same);
    if (found == configurations.end()) found = configurations.insert(found, std::vector<Tried>());
    found->push_back(std::move(tried));
  }
  return configurations;
}

// A measured column of trials.
struct MeasuredTrial {
  const char* name;
  std::optional<double> (*value)(const SweepData& data, const Summary& trial);
};
std::vector<MeasuredTrial> MeasuredOf(const SweepData& data) {
  std::vector<MeasuredTrial> columns = {
      {"logloss",
       [](const SweepData&, const Summary& trial) { return Finite(trial.metrics.logloss); }},
      {"AUC", [](const SweepData&, const Summary& trial) { return trial.metrics.auc; }}};
  if (data.tuning.metric() == Tuning::GAUC || data.tuning.metric() == Tuning::MONITORED) {
    columns.push_back({"compared", [](const SweepData& data, const Summary& trial) {
                         return MetricOf(data.tuning, trial).value;
                       }});
  }
  return columns;
}

// What the trial is compared by; none: it has no value.
std::optional<double> ComparedValue(const SweepData& data, const Tried& tried) {
  if (!tried.run->done()) return std::nullopt;
  const std::optional<double> value = MetricOf(data.tuning, *tried.run->status.result).value;
  return value ? Finite(*value) : std::nullopt;
}

std::string ComparedTitle(const std::string& metric) { return metric == "auc" ? "AUC" : metric; }

// "AUC", and whether larger is better.
std::pair<std::string, bool> ComparedBy(const SweepData& data, const std::vector<Tried>& trials) {
  for (const Tried& tried : trials) {
    if (!tried.run->done()) continue;
    const TuningMetric metric = MetricOf(data.tuning, *tried.run->status.result);
    return {ComparedTitle(metric.name), metric.larger_is_better};
  }
  return {"logloss", false};
}

// The metric over the first tuned field, a line for each rung.
Figure CurvesOf(const std::string& name, const SweepData& data, const std::vector<Tried>& trials,
                const std::string& field) {
  const auto [metric, larger_is_better] = ComparedBy(data, trials);
  std::map<int64_t, std::map<double, double>> curves;
  for (const Tried& tried : trials) {
    const std::optional<double> value = ComparedValue(data, tried);
    if (!value || tried.values[0].empty()) continue;
    const double x = std::strtod(tried.values[0].c_str(), nullptr);
    double& best = curves[tried.run->plan.steps].emplace(x, *value).first->second;
    best = larger_is_better ? std::max(best, *value) : std::min(best, *value);
  }
  LineChart chart = {.title = trials[0].name.empty() ? "Trials" : trials[0].name,
                     .subtitle = "validation " + metric + " of the trials",
                     .x = {.title = field, .logarithmic = true},
                     .y = {.title = metric},
                     .series = {},
                     .half = true};
  for (const auto& [steps, curve] : curves) {
    ChartSeries& series = chart.series.emplace_back();
    series.name = CountText(steps, "step");
    for (const auto& [x, value] : curve) {
      chart.x.logarithmic = chart.x.logarithmic && x > 0;
      series.points.push_back({.x = x, .y = value});
    }
  }
  return MakeFigure(name, chart);
}

// The metric over tuned field k, a point for each trial.
Figure CloudOf(const std::string& name, const SweepData& data, const std::vector<Tried>& trials,
               size_t k, const std::string& field) {
  const std::string metric = ComparedBy(data, trials).first;
  ScalingChart chart = {.title = (trials[0].name.empty() ? "" : trials[0].name + ": ") + field,
                        .subtitle = "validation " + metric + " of the trials",
                        .x = {.title = field, .logarithmic = true},
                        .y = {.title = metric},
                        .series = {}};
  std::map<int64_t, ScalingSeries> rungs;
  for (const Tried& tried : trials) {
    const std::optional<double> value = ComparedValue(data, tried);
    if (!value || tried.values[k].empty()) continue;
    const double x = std::strtod(tried.values[k].c_str(), nullptr);
    chart.x.logarithmic = chart.x.logarithmic && x > 0;
    rungs[tried.run->plan.steps].points.push_back(
        {.mean = {.x = x, .y = *value},
         .tip = Join(tried.values, ", ") + ": " + metric + Format(" %.5f", *value),
         .label = tried.chosen ? "chosen" : ""});
  }
  for (auto& [steps, series] : rungs) {
    series.name = CountText(steps, "step");
    chart.series.push_back(std::move(series));
  }
  return MakeFigure(name, chart);
}

}  // namespace

FigureGroup TuningFigures(const SweepData& data) {
  const bool random = data.tuning.has_random();
  FigureGroup group = {
      .heading = "How the values were chosen",
      .caption = random ? "A point is a trial, in the colour of its rung; the chosen one is named."
                        : "Each trial on the validation split, a line for each "
                          "rung; of several tuned fields the best of the others.",
      .figures = {}};
  const std::vector<size_t> tuned = data.TunedColumns();
  if (tuned.empty()) return group;
  for (const std::vector<Tried>& trials : Configurations(data)) {
    for (size_t k = 0; k < (random ? tuned.size() : 1); ++k) {
      if (group.figures.size() >= kMostTuned) return group;
      const std::string name = Format("tuning_%zu", group.figures.size() + 1);
      const std::string field = ShortName(data.columns[tuned[k]]);
      group.figures.push_back(random ? CloudOf(name, data, trials, k, field)
                                     : CurvesOf(name, data, trials, field));
    }
  }
  return group;
}

std::string SearchText(const SweepData& data) {
  std::string text;
  const std::vector<std::vector<Tried>> configurations = Configurations(data);
  for (size_t i = 0; i < std::min(data.tuned.size(), configurations.size()); ++i) {
    const TunedConfiguration& tuned = data.tuned[i];
    if (tuned.chosen.empty()) continue;
    std::string line = tuned.name + (tuned.name.empty() ? "" : ": ") + tuned.chosen +
                       " had the best validation " + ComparedTitle(tuned.metric) +
                       Format(", %.5f", tuned.value) + ", of " +
                       CountText(configurations[i].size(), "trial") + ".";
    if (!tuned.warning.empty()) line += " It is at the edge: " + tuned.warning + ".";
    if (!tuned.bound.empty()) line += " Not all was tried: " + tuned.bound + ".";
    text += "<li>" + Escaped(line) + "</li>\n";
  }
  return text.empty() ? "" : "<ul>\n" + text + "</ul>\n";
}

std::string TrialTable(const SweepData& data) {
  std::vector<std::vector<Cell>> rows;
  const std::vector<size_t> tuned = data.TunedColumns();
  const std::vector<Tried> trials = TrialsOf(data);
  for (const Tried& tried : trials) {
    if (rows.size() >= kMostTrials) break;
    std::vector<Cell>& row = rows.emplace_back();
    row.push_back({.text = tried.name});
    for (const std::string& value : tried.values) {
      row.push_back(NumberCell(value, std::strtod(value.c_str(), nullptr)));
    }
    const auto steps = static_cast<double>(tried.run->plan.steps);
    row.push_back(NumberCell(NumberText(steps, 0), steps));
    const auto& result = tried.run->status.result;
    for (const MeasuredTrial& measured : MeasuredOf(data)) {
      const std::optional<double> value =
          tried.run->done() ? measured.value(data, *result) : std::nullopt;
      row.push_back(value ? NumberCell(Format("%.5f", *value), *value)
                          : Cell{.text = "", .number = true});
    }
    row.push_back({.html = tried.chosen ? std::string("<span class=\"yes\">chosen</span>")
                           : tried.run->done()
                               ? std::string()
                               : Escaped(CauseOfAttempt(tried.run->status.attempts.exit_code))});
  }
  if (rows.empty()) return "";
  std::vector<Cell> headings = {Heading("setting")};
  for (const size_t c : tuned) headings.push_back(Heading(ShortName(data.columns[c]), true));
  headings.push_back(Heading("steps", true));
  for (const MeasuredTrial& measured : MeasuredOf(data)) {
    headings.push_back(Heading(StrCat("validation ", measured.name), true));
  }
  headings.push_back(Heading(""));
  std::string caption = Format("The %zu trials.", trials.size());
  if (rows.size() < trials.size())
    caption += Format(" The first %zu; all are in trials.csv.", rows.size());
  return "<details><summary>" + Escaped(Format("Each of the %zu trials", trials.size())) +
         "</summary>\n" + Table(caption, headings, rows, /*sortable=*/true) + "</details>\n";
}

std::string TrialsCsv(const SweepData& data) {
  std::vector<std::string> head = {"setting"};
  for (const size_t c : data.TunedColumns()) head.push_back(CsvText(data.columns[c]));
  head.push_back("steps");
  for (const MeasuredTrial& measured : MeasuredOf(data)) head.push_back(LowerCase(measured.name));
  head.insert(head.end(), {"chosen", "run"});
  std::string text = Join(head, ",") + "\n";
  for (const Tried& tried : TrialsOf(data)) {
    std::vector<std::string> line = {CsvText(tried.name)};
    for (const std::string& value : tried.values) line.push_back(CsvText(value));
    const auto& result = tried.run->status.result;
    line.push_back(std::to_string(tried.run->plan.steps));
    for (const MeasuredTrial& measured : MeasuredOf(data)) {
      const std::optional<double> value =
          tried.run->done() ? measured.value(data, *result) : std::nullopt;
      line.push_back(value ? CsvNumber(*value) : "");
    }
    line.insert(line.end(), {tried.chosen ? "yes" : "no", CsvText(tried.run->plan.folder)});
    text += Join(line, ",") + "\n";
  }
  return text;
}

}  // namespace elastor
