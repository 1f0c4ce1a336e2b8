#ifndef ELASTOR_TRAINER_PLOT_PLOT_RUNS_H_
#define ELASTOR_TRAINER_PLOT_PLOT_RUNS_H_

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/report/chart_table.h"

namespace elastor {

// Runs mode plot (docs/use/outputs.md, "Pictures of runs"). Writes report.html, which needs no
// other file, and every picture as .svg, with its data beside it if exported, for one training run
// or for several beside each other. Reads only the runs' folders. output_dir is a new or empty
// directory, or one with an earlier report, which is replaced; empty: FOLDER/report of the only
// run. The same files give the same bytes. Prints the report's path on stdout. User error in one
// line: no runs or too many, a folder without a run or records, several runs without output_dir, an
// output_dir that holds other files.
Status PlotRuns(const std::vector<std::string>& folders, const std::string& output_dir,
                std::optional<ExportFormat> exported = std::nullopt);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PLOT_PLOT_RUNS_H_
