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

// Mean of a configuration's losses with its 95 % interval by Student's t over the series' pooled
// spread of seeds; without a spread the interval is NaN. x is the first size.
ChartPoint MeanPoint(const SeriesLaw& law, const Configuration& configuration, Metric metric);

// What was held out and predicted of a configuration; null: it was not.
const HeldOut* HeldOutOf(const SeriesLaw& law, const Configuration& configuration);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_FIGURES_H_
