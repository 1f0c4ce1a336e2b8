#include "launcher/spectra_report/runs.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {
namespace {

Status AddRecord(const SpectrumRecord& record, SpectraRun* run) {
  if (record.stage.empty() || record.split.empty() || record.samples < 1) {
    return UserError("expected a record with stage, split and samples");
  }
  const std::string rows =
      std::to_string(record.samples) + " rows of the " + record.split + " split";
  if (run->rows.empty()) run->rows = rows;
  auto known = std::ranges::find(run->stages, record.stage);
  if (known == run->stages.end()) known = run->stages.insert(known, record.stage);
  // Later stages may have several matrices a row.
  if (known == run->stages.begin() && rows != run->rows) {
    return UserError("found " + rows + " after " + run->rows + "; expected the same");
  }
  for (int kind = 0; kind < kRankKinds; ++kind) {
    StageMeans& means = run->means[kind][record.step];
    if (known - run->stages.begin() != static_cast<int64_t>(means.size())) {
      return UserError("step " + std::to_string(record.step) + ": found stage " + record.stage +
                       " out of order; expected every stage once");
    }
    const double mean = (kind == 0 ? record.stable : record.entropy).mean;
    ELASTOR_RETURN_IF_ERROR(CheckFinite(std::string(kRankNames[kind]) + "_rank_mean", mean));
    means.push_back(mean);
  }
  return OkStatus();
}

// The ranks of the head's scoring matrices.
Status AddScoring(const ScoringRecord& record, SpectraRun* run) {
  for (int kind = 0; kind < kRankKinds; ++kind) {
    const double mean = kind == 0 ? record.stable : record.entropy;
    ELASTOR_RETURN_IF_ERROR(CheckFinite(std::string(kRankNames[kind]) + "_rank_mean", mean));
    run->scoring[kind][record.step] = mean;
  }
  return OkStatus();
}

// Returns the spectra of validation or test rows and those of training rows, where measured.
StatusOr<std::vector<SpectraRun>> ReadSpectraRuns(const std::string& folder) {
  ELASTOR_ASSIGN_OR_RETURN(const RunName name, ReadRunName(folder));
  SpectraRun run;
  run.source = folder;
  run.model = name.model;
  run.seed = name.seed;
  SpectraRun training = run;
  training.model += ", training rows";
  ELASTOR_RETURN_IF_ERROR(ReadRecords(folder, [&](const RunRecord& record) {
    if (const auto* spectrum = std::get_if<SpectrumRecord>(&record.values)) {
      return AddRecord(*spectrum, record.event == "spectrum" ? &run : &training);
    }
    const auto* scoring = std::get_if<ScoringRecord>(&record.values);
    return scoring ? AddScoring(*scoring, &run) : OkStatus();
  }));
  if (run.stages.empty() && training.stages.empty()) {
    return UserError(folder + "/" + kMetricsFile +
                     ": holds no effective ranks; expected lines whose event is spectrum");
  }
  std::vector<SpectraRun> runs;
  for (SpectraRun* measured : {&run, &training}) {
    if (!measured->stages.empty()) runs.push_back(std::move(*measured));
  }
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
  ELASTOR_ASSIGN_OR_RETURN(const bool holds_run, IsThere(folder + "/" + kExperimentFile));
  if (!holds_run) {
    return UserError(folder + ": has no " + kExperimentFile +
                     "; expected the folder of a run, of mode spectra or of mode projection");
  }
  ELASTOR_ASSIGN_OR_RETURN(const Experiment experiment, ReadRunExperiment(folder));
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
