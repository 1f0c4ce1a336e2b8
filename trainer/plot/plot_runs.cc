#include "trainer/plot/plot_runs.h"

#include "core/base/file.h"
#include "core/process/claimed_folder.h"
#include "core/process/standard_streams.h"
#include "core/report/html.h"
#include "trainer/plot/run_figures.h"
#include "trainer/plot/run_history.h"
#include "trainer/plot/run_page.h"

namespace elastor {
namespace {

constexpr char kPage[] = "report.html";

// Nothing but a report may be overwritten.
Status CheckOutput(const std::string& directory, const ClaimedFolder& claimed) {
  ELASTOR_ASSIGN_OR_RETURN(const bool holds_report, IsThere(directory + "/" + kPage));
  if (holds_report) return OkStatus();
  return claimed.CheckIsEmpty(
      std::string("a new or empty directory, or one with an earlier ") + kPage,
      /*remains=*/std::string(kPage) + ".tmp");
}

}  // namespace

Status PlotRuns(const std::vector<std::string>& folders, const std::string& output_dir,
                std::optional<ExportFormat> exported) {
  if (folders.empty()) {
    return UserError(
        "--mode=plot: no run; expected the folders of training runs, as in trainer "
        "--mode=plot RUN");
  }
  if (folders.size() > 1 && output_dir.empty()) {
    return UserError("--output_dir: missing; expected a new directory for the report of " +
                     std::to_string(folders.size()) + " runs");
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<RunHistory> runs, ReadRuns(folders));
  const size_t groups_drawn = GroupsOf(runs).size();
  const size_t curves = groups_drawn > 0 ? groups_drawn : runs.size();
  if (curves > kMostCurves) {
    return UserError(
        "--mode=plot: " + std::to_string(curves) +
        (groups_drawn > 0 ? " groups of runs, which differ in more than their seeds" : " runs") +
        "; expected at most " + std::to_string(kMostCurves));
  }
  const std::string directory = output_dir.empty() ? folders[0] + "/report" : output_dir;
  ELASTOR_ASSIGN_OR_RETURN(ClaimedFolder claimed, ClaimedFolder::Claim(directory));
  ELASTOR_RETURN_IF_ERROR(CheckOutput(directory, claimed));
  const RunPictures figures = MakeFigures(runs);
  std::vector<FigureGroup> groups = {figures.quality, figures.course};
  groups.insert(groups.end(), figures.ranks.begin(), figures.ranks.end());
  // The page first: a directory with pictures and without it is somebody's.
  const std::string page = directory + "/" + kPage;
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(page, ToHtml(runs, figures)));
  for (const FigureGroup& group : groups) {
    for (const Figure& figure : group.figures) {
      const std::string path = directory + "/" + figure.name;
      ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(path + ".svg", figure.svg));
      if (exported) {
        ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(path + "." + ExtensionOf(*exported),
                                                    ToText(figure.table, *exported)));
      }
    }
  }
  return WriteToStdout("report: " + WithoutControls(page) + "\n");
}

}  // namespace elastor
