#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_TRIALS_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_TRIALS_H_

#include <string>

#include "core/report/html.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

// The trials of a sweep's tuning, by the metric that chose among them.

// Pictures: of a grid the metric over the first tuned field; of a random search over every field.
FigureGroup TuningFigures(const SweepData& data);

// Returns for the page what was tried, what was chosen and what bounded the search, a line for each
// configuration, and the table of trials.
std::string SearchText(const SweepData& data);
std::string TrialTable(const SweepData& data);

// Returns a table for programs, a line for each trial.
std::string TrialsCsv(const SweepData& data);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_TRIALS_H_
