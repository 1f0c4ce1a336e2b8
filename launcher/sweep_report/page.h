#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_PAGE_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "launcher/scaling_law/analysis.h"
#include "launcher/sweep_report/arms.h"
#include "launcher/sweep_report/figures.h"
#include "launcher/sweep_report/laws.h"
#include "launcher/sweep_report/sweep_data.h"
#include "launcher/sweep_report/trials.h"

namespace elastor {

// Most rows of the table of runs and commands. All runs are in runs.csv.
inline constexpr size_t kMostRows = 500;

// Contents of the report.
struct SweepReport {
  SweepData data;
  AnalysisOptions options;
  SweepArms arms;
  std::vector<SweepLaw> laws;
  std::vector<FigureGroup> law_figures;
  FigureGroup forest, grid, tuning;
  FigureGroup pareto, throughput, gaps, kernels;
};

// Returns the text of report.html. The same report gives the same bytes.
std::string ToHtml(const SweepReport& report);

// Returns the names and texts of the tables: settings.csv, differences.csv and, of a tuned sweep,
// trials.csv with one line for each setting, compared pair and trial; fits.csv with one line per
// law; points.csv with one line per point of a law and two beyond its data; spectra.csv with one
// line per run and stage. If the sweep has them, also gaps.csv with one line per test, and
// kernels.csv with one line per run, step and layer.
std::vector<std::pair<std::string, std::string>> Tables(const SweepReport& report);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_PAGE_H_
