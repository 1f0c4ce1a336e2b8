// scaling_law: a scaling law of finished runs, and whether it can be believed
// (docs/use/analysis.md).

#include <gflags/gflags.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/process/standard_streams.h"
#include "launcher/folder_program.h"
#include "launcher/result_runs.h"
#include "launcher/scaling_law/analysis.h"
#include "launcher/scaling_law/report.h"
#include "launcher/scaling_law/runs.h"

DEFINE_string(points, "", "a CSV file of points, instead of run folders");
DEFINE_string(metric, "logloss",
              "what the law is of: logloss, auc (as 1 - auc) or "
              "normalized_entropy");
DEFINE_string(
    sizes, "dense_parameters",
    "the sizes, comma separated, one to three of dense_parameters, width, depth, samples, "
    "train_rows, multiply_adds");
DEFINE_string(json, "", "a file for all figures, as JSON");
DEFINE_double(delta, 0, "Huber's threshold on relative residuals; 0: from the runs' noise");
DEFINE_int32(replicates, 1000, "fits to replicates of the data that intervals are made from");
DEFINE_uint64(seed, 1, "of these replicates");
DEFINE_int32(comparisons, 1,
             "comparisons of two models whose intervals hold together in 95 % of the cases");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "scaling_law_main.cc";
constexpr int kLeastReplicates = 100, kMostReplicates = 100000;
constexpr int kMostComparisons = 1000;

StatusOr<std::vector<std::string>> ChosenSizes() {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= FLAGS_sizes.size();) {
    const size_t end = std::min(FLAGS_sizes.find(',', begin), FLAGS_sizes.size());
    names.push_back(FLAGS_sizes.substr(begin, end - begin));
    begin = end + 1;
  }
  std::string known;
  for (const char* name : SizeNames()) known += (known.empty() ? "" : ", ") + std::string(name);
  for (const std::string& name : names) {
    const bool is_known = std::ranges::find(SizeNames(), name) != SizeNames().end();
    if (is_known && std::ranges::count(names, name) == 1 && names.size() <= kMostLawSizes) continue;
    return UserError(StrCat("--sizes=", FLAGS_sizes, ": expected one to ", kMostLawSizes,
                            " different ones of ", known));
  }
  return names;
}

Status CheckFlags(const std::vector<std::string>& folders) {
  if (folders.empty() == FLAGS_points.empty()) {
    return UserError(folders.empty() ? "no run; expected folders of runs, or --points=FILE"
                                     : "--points=" + FLAGS_points + " and the folder " +
                                           folders.front() + "; expected one of the two");
  }
  if (!(FLAGS_delta >= 0 && FLAGS_delta <= 1)) {
    return UserError("--delta=" + std::to_string(FLAGS_delta) + ": expected 0 to 1");
  }
  if (FLAGS_replicates < kLeastReplicates || FLAGS_replicates > kMostReplicates) {
    return UserError(StrCat("--replicates=", FLAGS_replicates, ": expected ", kLeastReplicates,
                            " to ", kMostReplicates));
  }
  if (FLAGS_comparisons < 1 || FLAGS_comparisons > kMostComparisons) {
    return UserError(
        StrCat("--comparisons=", FLAGS_comparisons, ": expected 1 to ", kMostComparisons));
  }
  return OkStatus();
}

StatusOr<std::vector<Analysis>> AnalyseModels(std::span<const RunFacts> runs,
                                              std::span<const std::string> size_names,
                                              const AnalysisOptions& options) {
  std::map<std::string, std::vector<Configuration>> models;
  ELASTOR_ASSIGN_OR_RETURN(models, GroupRuns(runs, size_names, options.delta.has_value()));
  std::vector<Analysis> analyses;
  for (const auto& [model, configurations] : models) {
    analyses.push_back(Analyse(model, size_names, configurations, options));
  }
  return analyses;
}

// Every pair of models at equal parameters and at equal multiply-adds, where runs have them.
void AddComparisons(std::span<const RunFacts> runs, ScalingReport* report) {
  if (report->analyses.size() < 2) return;
  for (const std::string name : {"dense_parameters", "multiply_adds"}) {
    if (std::ranges::none_of(runs, [&](const RunFacts& run) { return run.sizes.contains(name); }))
      continue;
    const std::vector<std::string> size_names = {name};
    const StatusOr<std::vector<Analysis>> analyses =
        report->analyses.front().size_names == size_names
            ? report->analyses
            : AnalyseModels(runs, size_names, report->options);
    for (size_t i = 0; i < report->analyses.size(); ++i) {
      for (size_t j = i + 1; j < report->analyses.size(); ++j) {
        report->comparisons.push_back(
            analyses.ok()
                ? CompareModels((*analyses)[i], (*analyses)[j], name, report->options.comparisons)
                : ModelComparison{report->analyses[i].model,
                                  report->analyses[j].model,
                                  name,
                                  {},
                                  analyses.status().message()});
      }
    }
  }
}

Status FitRuns(const std::vector<std::string>& folders) {
  ELASTOR_RETURN_IF_ERROR(CheckFlags(folders));
  ScalingReport report;
  ELASTOR_ASSIGN_OR_RETURN(report.metric, MetricOf(FLAGS_metric));
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<std::string> size_names, ChosenSizes());
  if (FLAGS_delta > 0) report.options.delta = FLAGS_delta;
  report.options.replicates = FLAGS_replicates;
  report.options.seed = FLAGS_seed;
  report.options.comparisons = FLAGS_comparisons;
  ELASTOR_ASSIGN_OR_RETURN(const ResultRuns results, FindResultRuns(folders));
  std::fputs(results.left_out.c_str(), stderr);
  std::vector<elastor::RunFacts> runs;
  ELASTOR_ASSIGN_OR_RETURN(runs, FLAGS_points.empty()
                                     ? ReadRunFolders(results.folders, report.metric)
                                     : ReadPoints(FLAGS_points, report.metric));
  ELASTOR_ASSIGN_OR_RETURN(report.analyses, AnalyseModels(runs, size_names, report.options));
  AddComparisons(runs, &report);
  if (!FLAGS_json.empty()) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(FLAGS_json, ToJson(report)));
  }
  return WriteToStdout(ToText(report));
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  return elastor::RunFolderProgram(argc, argv, "scaling_law",
                                   "RUN... | --points=FILE: a scaling law of finished runs",
                                   elastor::kSourceFile, elastor::FitRuns);
}
