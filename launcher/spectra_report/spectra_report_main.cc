// spectra_report: the effective ranks of several runs in one picture (docs/operations.md).

#include <gflags/gflags.h>

#include <string>
#include <vector>

#include "core/base/file.h"
#include "launcher/folder_program.h"
#include "launcher/spectra_report/report.h"
#include "launcher/spectra_report/runs.h"
#include "trainer/run/standard_streams.h"

DEFINE_string(output_dir, "", "where stages.csv and the pictures are written");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "spectra_report_main.cc";

Status Run(const std::vector<std::string>& folders) {
  if (folders.empty()) return UserError("no run; expected folders of runs or of mode spectra");
  if (FLAGS_output_dir.empty()) return UserError("--output_dir: missing; expected a directory");
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<SpectraModel> models, ReadSpectraModels(folders));
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(FLAGS_output_dir));
  for (const auto& [name, text] : ReportFiles(models)) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(FLAGS_output_dir + "/" + name, text));
  }
  return WriteToStdout(ToText(models));
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  return elastor::RunFolderProgram(argc, argv, "spectra_report",
                                   "RUN...: the effective ranks of runs side by side",
                                   elastor::kSourceFile, elastor::Run);
}
