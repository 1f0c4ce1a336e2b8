#include "launcher/spectra_report/runs.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/base/file.h"
#include "core/base/json_entry.h"
#include "nlohmann/json.hpp"
#include "trainer/experiment/config.h"

namespace elastor {
namespace {

constexpr int64_t kMostInteger = int64_t{1} << 53;

// One line of metrics.jsonl. Throws as JsonEntry does.
void AddRecord(const JsonEntry& record, SpectraRun* run) {
  const std::string stage = record.Member("stage").Text();
  const int64_t step = record.Member("step").Integer(0, kMostInteger);
  const std::string rows = std::to_string(record.Member("samples").Integer(1, kMostInteger)) +
                           " rows of the " + record.Member("split").Text() + " split";
  if (run->rows.empty()) run->rows = rows;
  auto known = std::ranges::find(run->stages, stage);
  if (known == run->stages.end()) known = run->stages.insert(known, stage);
  // Later stages may have several matrices a row.
  if (known == run->stages.begin() && rows != run->rows) {
    throw "found " + rows + " after " + run->rows + "; expected the same";
  }
  for (int kind = 0; kind < kRankKinds; ++kind) {
    StageMeans& means = run->means[kind][step];
    if (known - run->stages.begin() != static_cast<int64_t>(means.size())) {
      throw "step " + std::to_string(step) + ": found stage " + stage +
          " out of order; expected every stage once";
    }
    means.push_back(record.Member(std::string(kRankNames[kind]) + "_rank_mean").Number());
  }
}

// A line of the head's scoring matrices.
void AddScoring(const JsonEntry& record, SpectraRun* run) {
  const int64_t step = record.Member("step").Integer(0, kMostInteger);
  for (int kind = 0; kind < kRankKinds; ++kind) {
    run->scoring[kind][step] = record.Member(std::string(kRankNames[kind]) + "_rank_mean").Number();
  }
}

// Returns the spectra of validation or test rows, and those of training rows if any were measured.
StatusOr<std::vector<SpectraRun>> ReadSpectraRuns(const std::string& folder) {
  ELASTOR_ASSIGN_OR_RETURN(const RunName name, ReadRunName(folder));
  SpectraRun run;
  run.source = folder;
  run.model = name.model;
  run.seed = name.seed;
  SpectraRun training = run;
  training.model += ", training rows";
  const std::string path = folder + "/metrics.jsonl";
  ELASTOR_ASSIGN_OR_RETURN(const std::string metrics, ReadFile(path));
  std::istringstream lines(metrics);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      const Json json = ParseJson(line);
      const JsonEntry record(json);
      const std::string event = record.Member("event").Text();
      if (event == "spectrum") AddRecord(record, &run);
      if (event == "training_spectrum") AddRecord(record, &training);
      if (event == "scoring") AddScoring(record, &run);
    } catch (const std::string& reason) {
      return UserError(path + ":" + std::to_string(number) + ": " + reason);
    }
  }
  if (run.stages.empty()) {
    return UserError(path + ": holds no effective ranks; expected lines whose event is spectrum");
  }
  std::vector<SpectraRun> runs = {std::move(run)};
  if (!training.stages.empty()) runs.push_back(std::move(training));
  // A run that was stopped may lack stages of its last measurement.
  for (SpectraRun& of_rows : runs) {
    for (auto& means : of_rows.means) {
      std::erase_if(means,
                    [&](const auto& at) { return at.second.size() != of_rows.stages.size(); });
    }
  }
  return runs;
}

Status AddRun(SpectraRun run, std::vector<SpectraModel>* models) {
  auto model = std::ranges::find(*models, run.model, &SpectraModel::name);
  if (model == models->end()) {
    model = models->insert(model, {run.model, run.rows, run.stages, {}, {}});
    for (const auto& [step, means] : run.means[0]) model->steps.push_back(step);
  }
  const std::string both = run.source + " and " +
                           (model->runs.empty() ? run.source : model->runs.front().source) +
                           ", both '" + model->name + "': ";
  if (run.stages != model->stages) return UserError(both + "have other stages");
  if (run.rows != model->rows) {
    return UserError(both + "measured " + run.rows + " and " + model->rows);
  }
  if (const auto same = std::ranges::find(model->runs, run.seed, &SpectraRun::seed);
      same != model->runs.end()) {
    return UserError(run.source + " and " + same->source + ", both '" + model->name +
                     "': have the same seed, " + std::to_string(run.seed) +
                     "; expected another, or another name by --set=name=");
  }
  std::erase_if(model->steps, [&](int64_t step) { return !run.means[0].contains(step); });
  if (model->steps.empty()) return UserError(both + "were measured at no step in common");
  model->runs.push_back(std::move(run));
  return OkStatus();
}

}  // namespace

StatusOr<RunName> ReadRunName(const std::string& folder) {
  const std::string path = folder + "/experiment.textproto";
  ELASTOR_ASSIGN_OR_RETURN(const bool holds_run, IsThere(path));
  if (!holds_run) {
    return UserError(folder +
                     ": has no experiment.textproto; expected the folder of a run, of mode spectra "
                     "or of mode projection");
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ParseExperiment(text, path));
  ELASTOR_ASSIGN_OR_RETURN(experiment, CompleteStored(std::move(experiment)));
  return RunName{experiment.name(), static_cast<int64_t>(experiment.training().seed())};
}

std::vector<size_t> Trajectory(std::span<const std::string> stages) {
  std::vector<size_t> last;
  std::string group;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const size_t point = stages[stage].find('.');
    const std::string of_stage = stages[stage].substr(0, point);
    const bool iteration = of_stage.starts_with("iteration") && of_stage != "iteration0";
    if (point == std::string::npos && !iteration) continue;
    if (last.empty() || of_stage != group) {
      last.push_back(stage);
    } else {
      last.back() = stage;
    }
    group = of_stage;
  }
  return last;
}

StatusOr<std::vector<SpectraModel>> ReadSpectraModels(std::span<const std::string> folders) {
  std::vector<SpectraModel> models;
  for (const std::string& folder : folders) {
    ELASTOR_ASSIGN_OR_RETURN(std::vector<SpectraRun> runs, ReadSpectraRuns(folder));
    for (SpectraRun& run : runs) ELASTOR_RETURN_IF_ERROR(AddRun(std::move(run), &models));
  }
  for (SpectraModel& model : models) std::ranges::sort(model.runs, {}, &SpectraRun::seed);
  return models;
}

}  // namespace elastor
