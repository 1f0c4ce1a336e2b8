#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_PAGE_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "launcher/scaling_law/analysis.h"
#include "launcher/sweep_report/figures.h"
#include "launcher/sweep_report/laws.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

// Rows of the table of runs and commands; all runs are in runs.csv.
inline constexpr size_t kMostRows = 500;

// What the report is made of.
struct SweepReport {
  SweepData data;
  AnalysisOptions options;
  std::vector<SweepLaw> laws;
  std::vector<FigureGroup> law_figures;
  FigureGroup pareto, throughput, gaps, kernels;
};

// report.html: the same bytes for the same report.
std::string ToHtml(const SweepReport& report);

// Names and texts of the tables: fits.csv, a line a law; points.csv, a line a point of a law and
// two beyond its data; spectra.csv, a line a run and stage; of sweeps that have them gaps.csv, a
// line a test, and kernels.csv, a line a run, step and layer.
std::vector<std::pair<std::string, std::string>> Tables(const SweepReport& report);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_PAGE_H_
