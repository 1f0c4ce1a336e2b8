#include "launcher/sweep_report/sweep_report.h"

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/process/claimed_folder.h"
#include "launcher/sweep_report/page.h"

namespace elastor {
namespace {

constexpr char kConverter[] = "rsvg-convert";

// Whether the picture was converted; the converter may not be there.
bool ConvertToPng(const std::string& svg, const std::string& png) {
  std::array<std::string, 5> words = {kConverter, "--zoom=2", "--background-color=white",
                                      "--output=" + png, svg};
  std::array<char*, words.size() + 1> arguments = {};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t child = 0;
  if (posix_spawnp(&child, kConverter, nullptr, nullptr, arguments.data(), environ) != 0) {
    return false;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Fits cost as much as the series has runs: of many runs fewer replicates say enough.
int MostReplicates(const SweepData& data) {
  constexpr double kMostFitted = 200'000;  // runs times replicates of a series
  constexpr int kLeast = 100;
  std::map<std::string, int> runs;
  for (const SweepRun& run : data.runs) runs[run.series] += run.done();
  int most = 1;
  for (const auto& [series, count] : runs) most = std::max(most, count);
  return std::max(static_cast<int>(kMostFitted / most), kLeast);
}

}  // namespace

StatusOr<std::string> WriteSweepReport(const SweepFiles& files, AnalysisOptions options,
                                       std::optional<ExportFormat> exported) {
  SweepReport report;
  ELASTOR_ASSIGN_OR_RETURN(report.data, ReadSweepData(files));
  report.options = options;
  report.options.replicates = std::min(options.replicates, MostReplicates(report.data));
  report.arms = CompareSettings(report.data);
  report.forest = ForestFigures(report.arms);
  report.grid = GridFigures(report.arms);
  report.tuning = TuningFigures(report.data);
  report.laws = FitLaws(report.data, report.options);
  report.law_figures = LawFigures(report.laws);
  report.pareto = ParetoFigures(report.data, report.arms);
  report.throughput = ThroughputFigures(report.data);
  report.gaps = GapFigures(report.data);
  report.kernels = KernelFigures(report.data);
  const std::string directory = files.Report() + "/";
  // The sweep's end and --report may come together.
  constexpr double kPatienceSeconds = 60;
  ELASTOR_ASSIGN_OR_RETURN(const ClaimedFolder claimed,
                           ClaimedFolder::Claim(files.Report(), kPatienceSeconds));
  for (const auto& [name, text] : Tables(report)) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(directory + name, text));
  }
  std::vector<FigureGroup> groups = report.law_figures;
  groups.insert(groups.end(), {report.forest, report.grid, report.tuning, report.pareto,
                               report.throughput, report.gaps, report.kernels});
  bool converts = true;
  for (const FigureGroup& group : groups) {
    for (const Figure& figure : group.figures) {
      const std::string path = directory + figure.name;
      ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(path + ".svg", figure.svg));
      if (exported) {
        ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(path + "." + ExtensionOf(*exported),
                                                    ToText(figure.table, *exported)));
      }
      converts = converts && ConvertToPng(path + ".svg", path + ".png");
    }
  }
  const std::string page = directory + "report.html";
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(page, ToHtml(report)));
  return "report: " + WithoutControls(page) + "\n" +
         (converts ? ""
                   : "report: no PNG files, for want of a working rsvg-convert (librsvg2-bin)\n");
}

}  // namespace elastor
