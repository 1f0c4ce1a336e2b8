#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_LAWS_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_LAWS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/scaling_law/analysis.h"
#include "launcher/scaling_law/report.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

// One series over the sizes of one law.
struct SeriesLaw {
  std::string series;
  std::vector<Configuration> configurations;  // losses of the runs that are done
  std::optional<Analysis> analysis;
  std::string why_not;  // in place of an analysis: "found one seed of every size; ..."
  std::string held;     // what all its runs share: "samples 109,711"; empty: nothing need be said
};

// A law of one metric over one to three sizes.
struct SweepLaw {
  Metric metric = Metric::kLogloss;
  std::vector<std::string> sizes;
  std::vector<SeriesLaw> series;             // in the report's order
  std::vector<ModelComparison> comparisons;  // every pair, by laws of parameters or samples
};

// Most series that the report draws and tests. Further series are in its tables only.
inline constexpr size_t kMostSeries = 6;

// Fits every law that the sweep's axes ask for, for logloss, AUC and normalised entropy. There are
// always laws over dense parameters and over multiply-adds. There are laws over depth, width and
// samples if they vary alone, and joint laws over sizes that vary independently. If there are
// several numbers of samples, laws of other sizes use the largest.
std::vector<SweepLaw> FitLaws(const SweepData& data, const AnalysisOptions& options);

// Returns a metric as it is reported: the AUC for the loss 1 - AUC, others as they are.
double Shown(Metric metric, double loss);
const char* ShownName(Metric metric);            // "AUC"
const char* SizeTitle(const std::string& size);  // "dense parameters"

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_LAWS_H_
