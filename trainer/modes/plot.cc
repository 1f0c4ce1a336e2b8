#include "core/base/text.h"
#include "core/report/chart_table.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/plot/plot_runs.h"

namespace elastor {
namespace {

Status RunPlot(const ModeCall& call, Communicator& communicator) {
  if (communicator.size() > 1) {
    return UserError(StrCat("--mode=plot: ", communicator.size(), " ranks; expected one"));
  }
  return PlotRuns(call.folders, call.options.output_dir, ExportFormatOf(FLAGS_export));
}

constexpr const char* kPlotFlags[] = {"export", "output_dir"};

}  // namespace

const Mode kPlot = {
    .name = "plot",
    .help = "draws pictures and one HTML page of the runs whose folders are the other arguments",
    .source = Mode::Source::kRuns,
    .model = Mode::Model::kNone,
    .writes = false,
    .flags = kPlotFlags,
    .run = RunPlot};

}  // namespace elastor
