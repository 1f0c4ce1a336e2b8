#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_ARMS_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_ARMS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/report/html.h"
#include "launcher/comparison/arm_sentences.h"
#include "launcher/comparison/arms.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

inline constexpr char kSeedColumn[] = "training.seed";
// Whether a column of the plan has an axis' labels; all others are fields.
inline bool IsLabel(const std::string& column) { return column.find('.') == column.npos; }
// "learning_rate"
inline std::string ShortName(const std::string& column) {
  return column.substr(column.rfind('.') + 1);
}

// Runs that differ in nothing but their seed.
struct Setting {
  std::string name;    // by the user's labels where they tell settings apart
  std::string series;  // SweepRun::series
  std::string level;   // what it has in common with settings of other series: "s1"; may be empty
  std::vector<std::string> values;    // of SweepArms::axes
  std::vector<const SweepRun*> runs;  // the done ones
  int64_t planned = 0;                // all of them
  std::string tuned;                  // "learning_rate 0.002"; empty: nothing was
};

// The settings of a sweep, and which of them are compared. Arms are series where series share
// levels, else settings.
struct SweepArms {
  std::vector<std::string>
      axes;  // what varies within series: labels, then fields they do not imply
  std::vector<Setting> settings;  // in the order of their first runs
  bool of_series = false;
  std::string split;                // on which the metrics of final runs were measured
  std::vector<ToldMetric> metrics;  // AUC, where all runs have it, and logloss
};
SweepArms CompareSettings(const SweepData& data);

// A measured column of settings: "test AUC".
struct SettingColumn {
  struct Mean {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double half = std::numeric_limits<double>::quiet_NaN();  // of the 95 % interval over seeds
    size_t count = 0;
  };
  std::string split, name;
  std::function<std::optional<double>(const MetricValues&)> value;
  bool larger_is_better = true;

  Mean Of(const Setting& setting) const;
};
// Returns those that any setting has; validation and test are never in one column.
std::vector<SettingColumn> ColumnsOf(const SweepArms& arms);

// Returns the differences that the page shows: of the best arm to every other one, the nearest
// first, each with those at single levels behind it.
std::vector<ArmDifference> ShownDifferences(const ToldMetric& metric);

// Pictures: differences with intervals; both axes of a sweep of two as a heat map.
FigureGroup ForestFigures(const SweepArms& arms);
FigureGroup GridFigures(const SweepArms& arms);

// Tables for the page.
std::string SettingTable(const SweepArms& arms);
std::string DifferenceTable(const SweepArms& arms);

// Tables for programs: a line for each setting, each difference.
std::string SettingsCsv(const SweepArms& arms);
std::string DifferencesCsv(const SweepArms& arms);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_ARMS_H_
