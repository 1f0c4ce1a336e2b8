#include "launcher/sweep_report/arms.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "core/base/student_t.h"
#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/chart.h"
#include "core/report/csv.h"
#include "launcher/sweep_report/laws.h"

namespace elastor {
namespace {

constexpr char kSeed[] = "training.seed";
constexpr size_t kMostArms = 60;     // more are not compared pair by pair
constexpr size_t kMostForest = 8;    // rows of a forest plot
constexpr size_t kMostTuned = 12;    // pictures of trials
constexpr size_t kMostTrials = 300;  // rows of their table
constexpr size_t kMostTableRows = 200;

bool IsLabel(const std::string& column) { return column.find('.') == column.npos; }

std::string ShortName(const std::string& column) { return column.substr(column.rfind('.') + 1); }

// Which columns say what a setting is.
class SettingColumns {
 public:
  explicit SettingColumns(const SweepData& data) : data_(data) {
    for (size_t c = 0; c < data.columns.size(); ++c) {
      if (data.columns[c] == kSeed) seed_ = c;
    }
    for (size_t c = 0; c < data.columns.size(); ++c) {
      if (c != seed_ && !data.IsOfTuning(c) && !NamesSeeds(c)) columns_.push_back(c);
    }
    for (const bool label : {true, false}) {
      for (const size_t c : columns_) {
        if (IsLabel(data.columns[c]) == label && Varies(c) && !IsImplied(c)) axes_.push_back(c);
      }
    }
  }

  std::vector<std::string> KeyOf(const SweepRun& run) const {
    std::vector<std::string> key = {run.series};
    for (const size_t c : columns_) key.push_back(run.plan.columns[c]);
    return key;
  }
  const std::vector<size_t>& axes() const { return axes_; }
  std::vector<size_t> Labels() const {
    std::vector<size_t> labels;
    for (const size_t c : columns_) {
      if (IsLabel(data_.columns[c])) labels.push_back(c);
    }
    return labels;
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // Whether the column only gives other names to the seeds.
  bool NamesSeeds(size_t column) const {
    if (seed_ == kNone) return false;
    std::map<std::string, std::string> seed_of, name_of;
    for (const SweepRun& run : data_.runs) {
      const std::string &name = run.plan.columns[column], &seed = run.plan.columns[seed_];
      if (seed_of.emplace(name, seed).first->second != seed) return false;
      if (name_of.emplace(seed, name).first->second != name) return false;
    }
    return seed_of.size() > 1;
  }

  bool Varies(size_t column) const {
    std::map<std::string, std::string> value_of;
    return std::ranges::any_of(data_.runs, [&](const SweepRun& run) {
      const std::string& value = run.plan.columns[column];
      return value_of.emplace(run.series, value).first->second != value;
    });
  }

  // Whether series and axes so far determine it, as a label does what its point sets.
  bool IsImplied(size_t column) const {
    std::map<std::vector<std::string>, std::string> value_of;
    return std::ranges::all_of(data_.runs, [&](const SweepRun& run) {
      std::vector<std::string> key = {run.series};
      for (const size_t c : axes_) key.push_back(run.plan.columns[c]);
      const std::string& value = run.plan.columns[column];
      return value_of.emplace(key, value).first->second == value;
    });
  }

  const SweepData& data_;
  size_t seed_ = kNone;
  std::vector<size_t> columns_;  // of a setting
  std::vector<size_t> axes_;     // of these, what varies within series
};

// Names by a label that tells all settings apart, by all labels together, else by series and level.
void NameSettings(const std::vector<std::vector<std::string>>& labels,
                  std::vector<Setting>* settings) {
  const auto all_differ = [&](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end()).size() == settings->size() &&
           std::ranges::find(names, "") == names.end();
  };
  std::vector<std::vector<std::string>> candidates;
  for (size_t c = 0; !labels.empty() && c < labels[0].size(); ++c) {
    std::vector<std::string>& names = candidates.emplace_back();
    for (const std::vector<std::string>& each : labels) names.push_back(each[c]);
  }
  std::vector<std::string>& joined = candidates.emplace_back();
  for (std::vector<std::string> each : labels) {
    each.erase(std::ranges::unique(each).begin(), each.end());
    joined.push_back(Join(each, ", "));
  }
  std::set<std::string> series;
  for (const Setting& setting : *settings) series.insert(setting.series);
  std::vector<std::string>& told = candidates.emplace_back();
  for (const Setting& setting : *settings) {
    told.push_back(setting.level.empty() ? setting.series
                   : series.size() == 1  ? setting.level
                                         : setting.series + ", " + setting.level);
  }
  for (const std::vector<std::string>& names : candidates) {
    if (!all_differ(names) && &names != &candidates.back()) continue;
    for (size_t i = 0; i < names.size(); ++i) (*settings)[i].name = names[i];
    return;
  }
}

std::string TunedText(const SweepData& data, const SweepRun& run) {
  std::vector<std::string> parts;
  for (const size_t c : data.TunedColumns()) {
    if (run.plan.columns[c].empty()) continue;
    parts.push_back(ShortName(data.columns[c]) + " " + run.plan.columns[c]);
  }
  return Join(parts, ", ");
}

std::vector<Setting> SettingsOf(const SweepData& data, const SettingColumns& columns) {
  std::vector<Setting> settings;
  std::vector<std::vector<std::string>> labels;
  std::map<std::vector<std::string>, size_t> known;
  for (const SweepRun& run : data.runs) {
    const auto [found, is_new] = known.emplace(columns.KeyOf(run), settings.size());
    if (is_new) {
      Setting& setting = settings.emplace_back();
      setting.series = run.series;
      setting.tuned = TunedText(data, run);
      std::vector<std::string> parts;
      for (const size_t c : columns.axes()) {
        const std::string& value = run.plan.columns[c];
        setting.values.push_back(value);
        if (value.empty()) continue;
        parts.push_back(IsLabel(data.columns[c]) ? value
                                                 : ShortName(data.columns[c]) + " " + value);
      }
      setting.level = Join(parts, ", ");
      std::vector<std::string>& own = labels.emplace_back();
      for (const size_t c : columns.Labels()) own.push_back(run.plan.columns[c]);
    }
    Setting& setting = settings[found->second];
    ++setting.planned;
    if (run.done()) setting.runs.push_back(&run);
  }
  NameSettings(labels, &settings);
  return settings;
}

std::optional<double> ValueOf(const SweepRun& run, Metric metric) {
  const std::optional<double> loss = run.Loss(metric);
  if (!loss) return std::nullopt;
  return Shown(metric, *loss);
}

ArmLevel LevelOf(const Setting& setting, const std::string& name, Metric metric) {
  ArmLevel level = {.name = name, .by_seed = {}};
  for (const SweepRun* run : setting.runs) {
    const std::optional<double> value = ValueOf(*run, metric);
    if (value) level.by_seed.emplace(run->seed, *value);
  }
  return level;
}

double MeanOf(const ArmLevel& level) {
  double sum = 0;
  for (const auto& [seed, value] : level.by_seed) sum += value;
  return sum / static_cast<double>(level.by_seed.size());
}

// Of the levels that all arms have; where there is none, of each arm's own.
std::vector<double> MeansOf(const std::vector<Arm>& arms) {
  std::set<std::string> common;
  for (const ArmLevel& level : arms[0].levels) {
    const bool all = std::ranges::all_of(arms, [&](const Arm& arm) {
      return std::ranges::find(arm.levels, level.name, &ArmLevel::name) != arm.levels.end();
    });
    if (all) common.insert(level.name);
  }
  std::vector<double> means;
  for (const Arm& arm : arms) {
    double sum = 0, count = 0;
    for (const ArmLevel& level : arm.levels) {
      if (!common.empty() && !common.contains(level.name)) continue;
      sum += MeanOf(level);
      ++count;
    }
    means.push_back(sum / count);
  }
  return means;
}

ToldMetric MetricOfArms(const SweepArms& arms, Metric metric) {
  ToldMetric told = {.name = ShownName(metric),
                     .larger_is_better = metric == Metric::kAuc,
                     .arms = {},
                     .means = {},
                     .comparison = {}};
  std::vector<Arm> compared;
  for (const Setting& setting : arms.settings) {
    ArmLevel level = LevelOf(setting, arms.of_series ? setting.level : "", metric);
    if (level.by_seed.empty()) continue;
    const std::string& name = arms.of_series ? setting.series : setting.name;
    auto arm = std::ranges::find(compared, name, &Arm::name);
    if (arm == compared.end()) arm = compared.insert(arm, {.name = name, .levels = {}});
    arm->levels.push_back(std::move(level));
  }
  if (compared.empty()) return told;
  told.means = MeansOf(compared);
  for (const Arm& arm : compared) told.arms.push_back(arm.name);
  if (compared.size() <= kMostArms) told.comparison = CompareArms(compared);
  return told;
}

bool HaveCommonLevels(const std::vector<Setting>& settings) {
  std::map<std::string, std::string> series_of;
  for (const Setting& setting : settings) {
    if (series_of.emplace(setting.level, setting.series).first->second != setting.series) {
      return true;
    }
  }
  return false;
}

struct Spread {
  double mean = NAN, half = NAN;  // half of the 95 % interval over seeds
  size_t count = 0;
};
Spread SpreadOf(const std::vector<double>& values) {
  Spread spread = {.count = values.size()};
  if (values.empty()) return spread;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  spread.mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() < 2) return spread;
  const auto count = static_cast<int64_t>(values.size());
  spread.half = MeanHalfWidth(std::sqrt(squares / static_cast<double>(count - 1)), count);
  return spread;
}

// A measured column of settings: "test AUC".
struct Column {
  std::string split, name;
  std::function<std::optional<double>(const MetricValues&)> value;
  bool larger_is_better = true;

  Spread Of(const Setting& setting) const {
    std::vector<double> values;
    for (const SweepRun* run : setting.runs) {
      const auto found = run->splits.find(split);
      if (found == run->splits.end()) continue;
      const std::optional<double> measured = value(found->second);
      if (measured) values.push_back(*measured);
    }
    return SpreadOf(values);
  }
};

// Those that any setting has; validation and test are never in one column.
std::vector<Column> ColumnsOf(const SweepArms& arms) {
  std::vector<Column> columns;
  for (const char* split : {"validation", "test"}) {
    columns.push_back({split, "AUC", [](const MetricValues& at) { return at.auc; }});
    columns.push_back(
        {split, "logloss", [](const MetricValues& at) { return Finite(at.logloss); }, false});
    columns.push_back({split, "gAUC", [](const MetricValues& at) { return at.gauc; }});
  }
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(
        arms.settings, [&](const Setting& setting) { return column.Of(setting).count > 0; });
  });
  return columns;
}

double MeanOver(const Setting& setting, const std::function<double(const SweepRun&)>& value) {
  double sum = 0;
  for (const SweepRun* run : setting.runs) sum += value(*run);
  return sum / static_cast<double>(std::max<size_t>(setting.runs.size(), 1));
}
double SecondsOf(const SweepRun& run) { return run.status.result->wall_s; }
double StepsOf(const SweepRun& run) { return static_cast<double>(run.status.result->steps); }

// The differences that the page shows: of the best arm to every other one, the nearest first, each
// with those at single levels behind it.
std::vector<ArmDifference> ShownDifferences(const ToldMetric& metric) {
  std::vector<ArmDifference> shown;
  if (metric.arms.empty()) return shown;
  const size_t best = BestArm(metric);
  for (size_t other = 0; other < metric.arms.size(); ++other) {
    if (other == best) continue;
    const auto gain = GainOver(metric, metric.comparison.overall, best, other);
    if (gain) shown.push_back(*gain);
  }
  std::ranges::stable_sort(shown, {}, &ArmDifference::value);
  std::vector<ArmDifference> with_levels;
  for (const ArmDifference& whole : shown) {
    with_levels.push_back(whole);
    for (const ArmDifference& at : metric.comparison.by_level) {
      const auto gain = GainOver(metric, {at}, best, whole.second);
      if (gain) with_levels.push_back(*gain);
    }
  }
  return with_levels;
}

std::string PText(double p) { return p < 0.0001 ? "< 0.0001" : Format("%.4f", p); }

Cell PCell(const std::optional<double>& p) {
  return p ? NumberCell(PText(*p), *p) : Cell{.text = "", .number = true};
}

std::string Signed(double value) {
  return (value < 0 ? "\u2212" : "+") + Format("%.5f", std::abs(value));
}

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
  return {std::string("lead_") + (metric.larger_is_better ? "auc" : "logloss"), ToSvg(chart)};
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

Figure GridOf(const SweepArms& arms, const std::string& series, const Column& column) {
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
    const Spread spread = column.Of(setting);
    if (spread.count == 0) continue;
    cell.value = spread.mean;
    cell.text = Format("%.4f", spread.mean);
    if (std::isfinite(spread.half)) cell.note = Format("\u00b1%.4f", spread.half);
  }
  std::string name = "grid_" + column.split + "_" + column.name;
  if (!series.empty()) name += "_" + series;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return {name, ToSvg(chart)};
}

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
    if (data.columns[c] != kSeed && !data.IsOfTuning(c)) own.push_back(c);
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

std::string CsvLine(const std::vector<std::string>& cells) { return Join(cells, ",") + "\n"; }
std::string Digits(double value) { return std::isfinite(value) ? CsvNumber(value) : ""; }

}  // namespace

SweepArms CompareSettings(const SweepData& data) {
  SweepArms arms;
  const SettingColumns columns(data);
  for (const size_t c : columns.axes()) arms.axes.push_back(data.columns[c]);
  arms.settings = SettingsOf(data, columns);
  arms.of_series = data.series.size() > 1 && HaveCommonLevels(arms.settings);
  bool have_auc = true;
  for (const SweepRun& run : data.runs) {
    if (!run.done()) continue;
    if (arms.split.empty()) arms.split = run.status.result->split;
    have_auc = have_auc && run.Loss(Metric::kAuc);
  }
  if (have_auc) arms.metrics.push_back(MetricOfArms(arms, Metric::kAuc));
  arms.metrics.push_back(MetricOfArms(arms, Metric::kLogloss));
  std::erase_if(arms.metrics, [](const ToldMetric& metric) { return metric.arms.empty(); });
  return arms;
}

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
  for (const Column& column : ColumnsOf(arms)) {
    if (column.split != arms.split || column.name == "gAUC") continue;
    for (size_t s = 0; s < std::min(series.size(), kMostSeries); ++s) {
      group.figures.push_back(GridOf(arms, series.size() > 1 ? series[s] : "", column));
    }
  }
  return group;
}

FigureGroup TuningFigures(const SweepData& data) {
  FigureGroup group = {.heading = "How the values were chosen",
                       .caption =
                           "Each trial's logloss on the validation split, a line for each "
                           "rung; of several tuned fields the best of the others.",
                       .figures = {}};
  const std::vector<size_t> tuned = data.TunedColumns();
  if (tuned.empty()) return group;
  std::vector<std::vector<std::string>> order;
  std::map<std::vector<std::string>, std::string> names;
  std::map<std::vector<std::string>, std::map<int64_t, std::map<double, double>>> curves;
  for (const Tried& tried : TrialsOf(data)) {
    if (names.emplace(tried.key, tried.name).second) order.push_back(tried.key);
    if (!tried.run->done() || tried.values[0].empty()) continue;
    const double x = std::strtod(tried.values[0].c_str(), nullptr);
    const double loss = tried.run->status.result->metrics.logloss;
    if (!std::isfinite(loss)) continue;
    double& best = curves[tried.key][tried.run->plan.steps].emplace(x, loss).first->second;
    best = std::min(best, loss);
  }
  for (const std::vector<std::string>& key : order) {
    if (group.figures.size() >= kMostTuned) break;
    LineChart chart = {.title = names[key].empty() ? "Trials" : names[key],
                       .subtitle = "validation logloss of the trials",
                       .x = {.title = ShortName(data.columns[tuned[0]]), .logarithmic = true},
                       .y = {.title = "logloss"},
                       .series = {},
                       .half = true};
    for (const auto& [steps, curve] : curves[key]) {
      ChartSeries& series = chart.series.emplace_back();
      series.name = CountText(steps, "step");
      for (const auto& [x, loss] : curve) {
        chart.x.logarithmic = chart.x.logarithmic && x > 0;
        series.points.push_back({.x = x, .y = loss});
      }
    }
    group.figures.push_back({Format("tuning_%zu", group.figures.size() + 1), ToSvg(chart)});
  }
  return group;
}

std::string SettingTable(const SweepArms& arms) {
  const std::vector<Column> columns = ColumnsOf(arms);
  const bool tuned =
      std::ranges::any_of(arms.settings, [](const Setting& each) { return !each.tuned.empty(); });
  std::vector<Cell> headings = {Heading("setting"), Heading("seeds", true)};
  for (const Column& column : columns)
    headings.push_back(Heading(column.split + " " + column.name, true));
  for (const char* name : {"parameters", "multiply-adds", "steps", "seconds"}) {
    headings.push_back(Heading(name, true));
  }
  if (tuned) headings.push_back(Heading("tuned", true));
  std::vector<double> best;
  for (const Column& column : columns) {
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
      const Spread spread = columns[c].Of(setting);
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
             "verdict follows p after Holm's correction for all ",
             pairs, pairs == 1 ? " pair" : " pairs",
             " of a metric, and for all pairs and levels where single levels are compared. All "
             "pairs are in differences.csv."),
      {Heading("metric"), Heading("best"), Heading("against"), Heading("at"),
       Heading("ahead by", true), Heading("95 % interval", true), Heading("seeds", true),
       Heading("p", true), Heading("p, Holm", true), Heading("verdict")},
      rows, /*sortable=*/false);
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
    const std::optional<double> logloss =
        tried.run->done() ? Finite(result->metrics.logloss) : std::nullopt;
    const std::optional<double> auc = tried.run->done() ? result->metrics.auc : std::nullopt;
    for (const std::optional<double>& value : {logloss, auc}) {
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
  for (const char* name : {"steps", "validation logloss", "validation AUC"}) {
    headings.push_back(Heading(name, true));
  }
  headings.push_back(Heading(""));
  std::string caption = Format("The %zu trials.", trials.size());
  if (rows.size() < trials.size())
    caption += Format(" The first %zu; all are in trials.csv.", rows.size());
  return "<details><summary>" + Escaped(Format("Each of the %zu trials", trials.size())) +
         "</summary>\n" + Table(caption, headings, rows, /*sortable=*/true) + "</details>\n";
}

std::string SettingsCsv(const SweepArms& arms) {
  const std::vector<Column> columns = ColumnsOf(arms);
  std::vector<std::string> head = {"setting",       "series", "level", "runs",  "dense_parameters",
                                   "multiply_adds", "tuned",  "steps", "wall_s"};
  for (const Column& column : columns) {
    const std::string name = column.split + "_" + LowerCase(column.name);
    head.insert(head.end(), {name, name + "_half_width"});
  }
  std::string text = CsvLine(head);
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
                                     Digits(MeanOver(setting, StepsOf)),
                                     Digits(MeanOver(setting, SecondsOf))};
    for (const Column& column : columns) {
      const Spread spread = column.Of(setting);
      line.insert(line.end(), {Digits(spread.mean), Digits(spread.half)});
    }
    text += CsvLine(line);
  }
  return text;
}

std::string DifferencesCsv(const SweepArms& arms) {
  std::string text = "metric,split,first,second,level,seeds,paired,difference,low,high,p,p_holm\n";
  for (const ToldMetric& metric : arms.metrics) {
    for (const auto* list : {&metric.comparison.overall, &metric.comparison.by_level}) {
      for (const ArmDifference& each : *list) {
        text +=
            CsvLine({CsvText(LowerCase(metric.name)), CsvText(arms.split),
                     CsvText(metric.arms[each.first]), CsvText(metric.arms[each.second]),
                     CsvText(each.level), std::to_string(each.seeds), each.paired ? "yes" : "no",
                     Digits(each.value), each.interval ? Digits(each.interval->low) : "",
                     each.interval ? Digits(each.interval->high) : "",
                     each.p ? Digits(*each.p) : "", each.holm ? Digits(*each.holm) : ""});
      }
    }
  }
  return text;
}

std::string TrialsCsv(const SweepData& data) {
  std::vector<std::string> head = {"setting"};
  for (const size_t c : data.TunedColumns()) head.push_back(CsvText(data.columns[c]));
  head.insert(head.end(), {"steps", "logloss", "auc", "chosen", "run"});
  std::string text = CsvLine(head);
  for (const Tried& tried : TrialsOf(data)) {
    std::vector<std::string> line = {CsvText(tried.name)};
    for (const std::string& value : tried.values) line.push_back(CsvText(value));
    const auto& result = tried.run->status.result;
    const bool done = tried.run->done();
    line.insert(line.end(),
                {std::to_string(tried.run->plan.steps), done ? Digits(result->metrics.logloss) : "",
                 done && result->metrics.auc ? Digits(*result->metrics.auc) : "",
                 tried.chosen ? "yes" : "no", CsvText(tried.run->plan.folder)});
    text += CsvLine(line);
  }
  return text;
}

}  // namespace elastor
