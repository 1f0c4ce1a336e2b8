#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_ARMS_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_ARMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/report/html.h"
#include "launcher/comparison/arm_sentences.h"
#include "launcher/comparison/arms.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

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

// Pictures: differences with intervals; both axes of a sweep of two as a heat map; trials.
FigureGroup ForestFigures(const SweepArms& arms);
FigureGroup GridFigures(const SweepArms& arms);
FigureGroup TuningFigures(const SweepData& data);

// Tables for the page.
std::string SettingTable(const SweepArms& arms);
std::string DifferenceTable(const SweepArms& arms);
std::string TrialTable(const SweepData& data);

// Tables for programs: a line for each setting, each difference, each trial.
std::string SettingsCsv(const SweepArms& arms);
std::string DifferencesCsv(const SweepArms& arms);
std::string TrialsCsv(const SweepData& data);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_ARMS_H_
