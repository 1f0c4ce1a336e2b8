#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/report/chart.h"
#include "core/report/html.h"
#include "launcher/sweep_report/laws.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

// Figures 7 and 8 of the RankElastor paper: the laws.
std::vector<FigureGroup> LawFigures(const std::vector<SweepLaw>& laws);
// The best quality for a cost: multiply-adds of the training, and its seconds.
FigureGroup ParetoFigures(const SweepData& data);
// Samples a second and multiply-adds a second of a core, by size.
FigureGroup ThroughputFigures(const SweepData& data);
// Generalisation gap over training loss, a picture a test; figures 7 to 12 of arXiv:2605.20749.
FigureGroup GapFigures(const SweepData& data);
// Condition numbers of the neural tangent kernel, layer by layer, at the runs' first and last
// measurements, of every series' largest model; its figure 3.
FigureGroup KernelFigures(const SweepData& data);

// Condition numbers of a layer over the runs of a series that have the same sizes, at their first
// measurements or at their last.
struct ConditionNumbers {
  std::string series, layer;
  bool last = false;
  std::map<std::string, double> sizes;  // SweepRun::sizes
  int64_t dense_parameters = 0, samples = 0;
  int64_t least_step = 0, most_step = 0;  // of the measurements; runs may end at different ones
  int64_t rows = 0;
  int runs = 0;               // also those in which it is not resolved
  std::vector<double> log10;  // of those in which it is
};
// Every series, size and layer, first and, where any run was measured twice, last; a single
// measurement is both.
std::vector<ConditionNumbers> ConditionNumbersOf(const SweepData& data);
// Mean of 1 and more values with its 95 % interval by Student's t; of one value it is infinite.
ChartPoint MeanWithInterval(const std::vector<double>& values);

// Mean of a configuration's losses with its 95 % interval by Student's t over the series' pooled
// spread of seeds; without a spread the interval is NaN. x is the first size.
ChartPoint MeanPoint(const SeriesLaw& law, const Configuration& configuration, Metric metric);

// What was held out and predicted of a configuration; null: it was not.
const HeldOut* HeldOutOf(const SeriesLaw& law, const Configuration& configuration);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_
