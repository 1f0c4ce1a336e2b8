// comparison: models compared by the predictions of finished runs (docs/use/analysis.md).

#include <gflags/gflags.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/process/standard_streams.h"
#include "launcher/comparison/comparison.h"
#include "launcher/comparison/report.h"
#include "launcher/comparison/runs.h"
#include "launcher/folder_program.h"
#include "launcher/rename_label.h"
#include "launcher/result_runs.h"

DEFINE_string(markdown, "", "a file for the tables, which are printed, too");
DEFINE_string(csv, "", "a file for all figures");
DEFINE_string(rename, "", "OLD=NEW, another name for a model");
DEFINE_string(against, "", "compare this model with all others; default: every pair");
DEFINE_int32(resamples, 1000, "of the rows, for the bootstrap; 0: none");
DEFINE_uint64(seed, 1, "of the resamples");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "comparison_main.cc";
constexpr int kLeastResamples = 100, kMostResamples = 1'000'000;

Status CheckFlags(const std::vector<std::string>& folders) {
  if (folders.empty())
    return UserError("no run; expected folders of runs with predictions, or of sweeps");
  if (FLAGS_resamples == 0) return OkStatus();
  if (FLAGS_resamples >= kLeastResamples && FLAGS_resamples <= kMostResamples) return OkStatus();
  return UserError("--resamples=" + std::to_string(FLAGS_resamples) + ": expected 0, or " +
                   std::to_string(kLeastResamples) + " to " + std::to_string(kMostResamples));
}

Status Rename(ComparedRuns* runs) {
  if (FLAGS_rename.empty()) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const Renaming renaming, ParseRenaming(FLAGS_rename));
  std::vector<std::string> names;
  for (const ComparedModel& model : runs->models) names.push_back(model.name);
  const auto from = std::ranges::find(names, renaming.from);
  if (from == names.end() || std::ranges::find(names, renaming.to) != names.end()) {
    return UserError("--rename=" + FLAGS_rename + ": expected one of " + Join(names, ", ") +
                     ", and a new name");
  }
  runs->models[from - names.begin()].name = renaming.to;
  return OkStatus();
}

Status Run(const std::vector<std::string>& folders) {
  ELASTOR_RETURN_IF_ERROR(CheckFlags(folders));
  ELASTOR_ASSIGN_OR_RETURN(const ResultRuns results, FindResultRuns(folders));
  std::fputs(results.left_out.c_str(), stderr);
  ELASTOR_ASSIGN_OR_RETURN(ComparedRuns runs, ReadComparedRuns(results.folders, results.names));
  ELASTOR_RETURN_IF_ERROR(Rename(&runs));
  std::string names;
  bool known = FLAGS_against.empty();
  for (const ComparedModel& model : runs.models) {
    names += (names.empty() ? "" : ", ") + model.name;
    known = known || model.name == FLAGS_against;
  }
  if (!known) return UserError("--against=" + FLAGS_against + ": expected one of " + names);
  const Comparison comparison =
      Compare(runs.labels, runs.models,
              {.resamples = FLAGS_resamples, .seed = FLAGS_seed, .against = FLAGS_against});
  const std::string text = ToMarkdown(runs, comparison);
  if (!FLAGS_markdown.empty()) ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(FLAGS_markdown, text));
  if (!FLAGS_csv.empty()) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(FLAGS_csv, ToCsv(runs, comparison)));
  }
  return WriteToStdout(text);
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  return elastor::RunFolderProgram(argc, argv, "comparison",
                                   "RUN...: models compared by the predictions of their runs",
                                   elastor::kSourceFile, elastor::Run);
}
