// spectra_report: the effective ranks of several runs in one picture, and what their heads make of
// matrices cut to lower ones (docs/use/analysis.md).

#include <gflags/gflags.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/process/claimed_folder.h"
#include "core/process/standard_streams.h"
#include "core/report/chart_table.h"
#include "launcher/folder_program.h"
#include "launcher/spectra_report/projections.h"
#include "launcher/spectra_report/report.h"
#include "launcher/spectra_report/runs.h"

DEFINE_string(output_dir, "", "where the tables and pictures are written");
DEFINE_string(
    export, "",
    "csv or json: also a file of the data behind every picture, NAME.csv beside NAME.svg");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "spectra_report_main.cc";

Status Run(const std::vector<std::string>& folders) {
  if (folders.empty()) {
    return UserError("no run; expected folders of runs, of mode spectra or of mode projection");
  }
  if (FLAGS_output_dir.empty()) return UserError("--output_dir: missing; expected a directory");
  const std::optional<ExportFormat> exported = ExportFormatOf(FLAGS_export);
  if (!FLAGS_export.empty() && !exported) {
    return UserError("--export=" + FLAGS_export + ": expected csv or json");
  }
  std::vector<std::string> measured, projected;
  for (const std::string& folder : folders) {
    ELASTOR_ASSIGN_OR_RETURN(const bool projections, HoldsProjections(folder));
    (projections ? projected : measured).push_back(folder);
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<SpectraModel> models, ReadSpectraModels(measured));
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<ProjectedModel> cut, ReadProjections(projected));
  NamedTexts files;
  if (!models.empty()) files = ReportFiles(models, exported);
  if (!cut.empty()) std::ranges::move(ProjectionFiles(cut, exported), std::back_inserter(files));
  ELASTOR_ASSIGN_OR_RETURN(const ClaimedFolder claimed, ClaimedFolder::Claim(FLAGS_output_dir));
  for (const auto& [name, text] : files) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(FLAGS_output_dir + "/" + name, text));
  }
  return WriteToStdout(ToText(models) + ToText(cut));
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  return elastor::RunFolderProgram(
      argc, argv, "spectra_report",
      "RUN...: the effective ranks of runs side by side, and the projections of mode projection",
      elastor::kSourceFile, elastor::Run);
}
