#ifndef ELASTOR_TRAINER_PLOT_PLOT_RUNS_H_
#define ELASTOR_TRAINER_PLOT_PLOT_RUNS_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// Mode plot (docs/use/outputs.md, "Pictures of runs"): report.html, which needs no other file, and
// every picture as .svg, of one training run or of several beside each other, from their folders'
// files alone. output_dir: a new or empty directory, or one with an earlier report, which is
// replaced; empty: FOLDER/report of the one run. The same bytes for the same files. Tells where the
// report is on stdout. User error in one line: no runs or too many, a folder without a run or
// records, several without output_dir, an output_dir that holds something else.
Status PlotRuns(const std::vector<std::string>& folders, const std::string& output_dir);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PLOT_PLOT_RUNS_H_
