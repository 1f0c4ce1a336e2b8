#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_

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
// Condition numbers of the neural tangent kernel, layer by layer, at the first and the last
// measurement; its figure 3.
FigureGroup KernelFigures(const SweepData& data);

// Condition numbers of a layer over the runs of a series that were measured at a step.
struct ConditionNumbers {
  std::string series, layer;
  int64_t step = 0, rows = 0;
  int runs = 0;               // also those in which it is not resolved
  std::vector<double> log10;  // of those in which it is
};
// Every series and layer, at the first step and at the last.
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
