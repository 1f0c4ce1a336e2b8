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

constexpr size_t kMostArms = 60;  // more are not compared pair by pair

// Which columns say what a setting is.
class SettingColumns {
 public:
  explicit SettingColumns(const SweepData& data) : data_(data) {
    for (size_t c = 0; c < data.columns.size(); ++c) {
      if (data.columns[c] == kSeedColumn) seed_ = c;
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
    each.erase(std::unique(each.begin(), each.end()), each.end());
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

SettingColumn::Mean MeanOfSeeds(const std::vector<double>& values) {
  SettingColumn::Mean spread = {.count = values.size()};
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

SettingColumn::Mean SettingColumn::Of(const Setting& setting) const {
  std::vector<double> values;
  for (const SweepRun* run : setting.runs) {
    const auto found = run->splits.find(split);
    if (found == run->splits.end()) continue;
    const std::optional<double> measured = value(found->second);
    if (measured) values.push_back(*measured);
  }
  return MeanOfSeeds(values);
}

std::vector<SettingColumn> ColumnsOf(const SweepArms& arms) {
  std::vector<SettingColumn> columns;
  for (const char* split : {"validation", "test"}) {
    columns.push_back({split, "AUC", [](const MetricValues& at) { return at.auc; }});
    columns.push_back(
        {split, "logloss", [](const MetricValues& at) { return Finite(at.logloss); }, false});
    columns.push_back({split, "gAUC", [](const MetricValues& at) { return at.gauc; }});
  }
  std::erase_if(columns, [&](const SettingColumn& column) {
    return std::ranges::none_of(
        arms.settings, [&](const Setting& setting) { return column.Of(setting).count > 0; });
  });
  return columns;
}

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

}  // namespace elastor
