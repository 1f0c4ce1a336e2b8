#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/report/chart.h"
#include "core/report/html.h"
#include "launcher/sweep_report/arms.h"
#include "launcher/sweep_report/laws.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

// Draws the laws, like figures 7 and 8 of the RankElastor paper.
std::vector<FigureGroup> LawFigures(const std::vector<SweepLaw>& laws);
// Draws the best quality for a cost: the training's multiply-adds, and its seconds. Settings on the
// front are named.
FigureGroup ParetoFigures(const SweepData& data, const SweepArms& arms);
// Draws samples per second and multiply-adds per second and core, by size.
FigureGroup ThroughputFigures(const SweepData& data);
// Draws the generalisation gap over training loss, one picture per test, like figures 7 to 12 of
// arXiv:2605.20749.
FigureGroup GapFigures(const SweepData& data);
// Draws the condition numbers of the neural tangent kernel of every series' largest model, layer by
// layer, at the runs' first and last measurements, like figure 3 of arXiv:2605.20749.
FigureGroup KernelFigures(const SweepData& data);

// Condition numbers of a layer over the runs of a series that have the same sizes, at their first
// measurements or at their last.
struct ConditionNumbers {
  std::string series, layer;
  bool last = false;
  std::map<std::string, double> sizes;  // SweepRun::sizes
  int64_t dense_parameters = 0, samples = 0;
  int64_t least_step = 0,
          most_step = 0;  // range of the measured steps; runs may end at different ones
  int64_t rows = 0;
  int runs = 0;               // also those in which it is not resolved
  std::vector<double> log10;  // log10 of each resolved condition number
};
// Returns the condition numbers of every series, size and layer at the first and, if any run was
// measured twice, at the last measurement. A single measurement counts as both.
std::vector<ConditionNumbers> ConditionNumbersOf(const SweepData& data);
// Returns the mean of one or more values with its 95 % interval by Student's t, which is infinite
// for one value.
ChartPoint MeanWithInterval(const std::vector<double>& values);

// Returns the mean of a configuration's losses with its 95 % interval by Student's t over the
// series' pooled spread of seeds. Without a spread the interval is NaN. x is the first size.
ChartPoint MeanPoint(const SeriesLaw& law, const Configuration& configuration, Metric metric);

// Returns the held-out prediction of a configuration, or null if it was not held out.
const HeldOut* HeldOutOf(const SeriesLaw& law, const Configuration& configuration);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_
