#include "launcher/make_plan.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/numerics.h"
#include "core/base/text.h"
#include "launcher/kept_folders.h"
#include "launcher/run_sizes.h"
#include "launcher/sweep_file.h"
#include "launcher/tuning.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/overrides.h"
#include "trainer/records/run_records.h"

namespace elastor {
namespace {

constexpr char kSeedField[] = "training.seed";
constexpr char kStageColumn[] = "stage", kWarningColumn[] = "tuning_warning";
// How often a run that can be stopped at any moment writes a checkpoint.
constexpr double kCheckpointMinutes = 10;

// "path.to.field=value" in two.
std::pair<std::string, std::string> Halves(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  return {assignment.substr(0, equals), assignment.substr(equals + 1)};
}

// Whether all points of an axis set one field each, so that their values say all of it.
bool IsField(const Axis& axis) {
  return std::ranges::all_of(axis.point(), [&](const Point& point) {
    return point.set_size() == 1 && Halves(point.set(0)).first == axis.name();
  });
}

std::vector<std::string> ColumnNames(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const Axis& axis : sweep.axis()) {
    if (!IsField(axis)) names.push_back(axis.name());
  }
  for (const Axis& axis : sweep.axis()) {
    for (const Point& point : axis.point()) {
      for (const std::string& assignment : point.set()) {
        const std::string field = Halves(assignment).first;
        if (std::ranges::find(names, field) == names.end()) names.push_back(field);
      }
    }
  }
  if (sweep.has_tuning()) {
    names.push_back(kStageColumn);
    for (const TunedField& field : sweep.tuning().field()) names.push_back(field.field());
    names.push_back(kWarningColumn);
  }
  return names;
}

// The axis that sets the seed and nothing else; -1: there is none.
int SeedAxis(const Sweep& sweep) {
  for (int i = 0; i < sweep.axis_size(); ++i) {
    const auto is_seed = [](const Point& point) {
      return point.set_size() == 1 && Halves(point.set(0)).first == kSeedField;
    };
    if (std::ranges::all_of(sweep.axis(i).point(), is_seed)) return i;
  }
  return -1;
}

class Planner {
 public:
  Planner(const Sweep& sweep, const SweepFiles& files, Plan* plan)
      : sweep_(sweep), files_(files), plan_(*plan) {}

  Status AddAll() {
    ELASTOR_ASSIGN_OR_RETURN(there_, FoldersByHash(files_));
    if (sweep_.has_tuning()) return AddTuned();
    for (const Combination& combination : Product(sweep_)) {
      ELASTOR_ASSIGN_OR_RETURN(PlannedRun run, MakeRun(sweep_, combination, {}));
      ELASTOR_RETURN_IF_ERROR(Add(std::move(run)));
    }
    return OkStatus();
  }

 private:
  // What a run has beside its combination.
  struct Details {
    Stage stage = Stage::kFinal;
    std::vector<std::string> set = {};     // after what the points set
    std::vector<std::string> labels = {};  // after theirs, and then
    std::string seed_label = {};
    int rung = 0;  // of a trial
    std::string warning = {};
  };

  Status Add(PlannedRun run) {
    const auto [same, added] = runs_by_hash_.emplace(HashOfFolder(run.folder), run.folder);
    if (!added) {
      return UserError("runs " + same->second + " and " + run.folder +
                       " differ in no field that changes a result; expected every run once");
    }
    plan_.runs.push_back(std::move(run));
    return OkStatus();
  }

  StatusOr<PlannedRun> MakeRun(const Sweep& sweep, const Combination& combination,
                               const Details& details) {
    std::vector<std::string> labels;
    if (details.stage == Stage::kTune) labels.push_back("tune");
    for (const Point* point : combination.points) labels.push_back(point->label());
    labels.insert(labels.end(), details.labels.begin(), details.labels.end());
    if (!details.seed_label.empty()) labels.push_back(details.seed_label);
    ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, Resolve(sweep, combination, details));
    const Status valid = ValidateExperiment(WithAbsolutePaths(experiment));
    if (!valid.ok()) return UserError("run " + Join(labels, " ") + ": " + valid.message());
    ELASTOR_ASSIGN_OR_RETURN(const RunSizes::Data* data, sizes_.Open(experiment));
    PlannedRun run;
    run.stage = details.stage;
    run.seed = experiment.training().seed();
    ELASTOR_ASSIGN_OR_RETURN(const int64_t rows, TrainingRows(experiment, data->info));
    const TrainingConfig& training = experiment.training();
    const int64_t batch = training.batch_size();
    run.steps = (rows + batch - 1) / batch * training.epochs();
    if (training.max_steps() > 0) run.steps = std::min(run.steps, training.max_steps());
    if (run.stage == Stage::kTune && rows > 0) {
      const int64_t steps = StepsOfRung(sweep_.tuning(), details.rung, run.steps);
      if (steps < 1) {
        return UserError(StrCat("run ", Join(labels, " "), ": tuning: has 0 steps in rung ",
                                details.rung + 1, ", of ", run.steps,
                                "; expected fewer rungs, a smaller eta or a larger share"));
      }
      if (steps < run.steps) experiment.mutable_training()->set_max_steps(steps);
      run.steps = steps;
    }
    if (run.stage == Stage::kTune && sweep_.tuning().metric() == Tuning::GAUC &&
        !data->info.has_groups) {
      return UserError("tuning: metric: GAUC, but the data have no groups; expected another one");
    }
    run.samples = std::min(run.steps * batch, rows * training.epochs());
    if (run.stage == Stage::kFinal) run.predictions = sweep_.predictions();
    run.folder =
        FolderName(labels, RunHash(experiment, data->fingerprint, numerics_, run.predictions));
    run.columns = Columns(sweep, combination, details);
    run.model = KindName(*ChosenModel(experiment.model()));
    const Resources& resources = sweep_.resources();
    run.ranks = std::max(1, resources.ranks());
    run.gpus = resources.gpus();
    run.nodes = std::max(1, resources.nodes());
    run.memory_gb = resources.memory_gb();
    run.minutes = resources.minutes();
    run.threads = experiment.parallel().threads();
    const Status ranks = ValidateRanks(experiment, run.ranks);
    if (!ranks.ok()) return UserError("run " + run.folder + ": " + ranks.message());
    ELASTOR_RETURN_IF_ERROR(sizes_.Measure(experiment, *data, &run));
    run.experiment = ExperimentText(WithAbsolutePaths(experiment));
    return run;
  }

  StatusOr<Experiment> Resolve(const Sweep& sweep, const Combination& combination,
                               const Details& details) {
    ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, MakeExperiment(sweep, combination));
    const Status set = ApplyOverrides(details.set, &experiment);
    if (!set.ok()) return UserError("tuning: " + WithoutFlag(set.message()));
    if (sweep_.resources().threads() > 0) {
      experiment.mutable_parallel()->set_threads(sweep_.resources().threads());
    }
    CheckpointConfig* checkpoint = experiment.mutable_checkpoint();
    if (!checkpoint->has_every_steps() && !checkpoint->has_every_minutes()) {
      checkpoint->set_every_minutes(kCheckpointMinutes);
    }
    // Nobody looks at a trial's.
    if (details.stage == Stage::kTune) experiment.mutable_spectrum()->set_disabled(true);
    ResolveDefaults(&experiment);
    return experiment;
  }

  // Trials, and final runs where they are over, of every configuration.
  Status AddTuned() {
    Sweep configurations = sweep_;
    std::vector<Details> finals(1);
    if (const int seeds = SeedAxis(sweep_); seeds >= 0) {
      finals.clear();
      for (const Point& point : sweep_.axis(seeds).point()) {
        finals.push_back({.set = {point.set(0)}, .seed_label = point.label()});
      }
      seed_axis_ = sweep_.axis(seeds).name();
      configurations.mutable_axis()->DeleteSubrange(seeds, 1);
    }
    for (const Combination& combination : Product(configurations)) {
      ELASTOR_RETURN_IF_ERROR(AddConfiguration(configurations, combination, finals));
    }
    return OkStatus();
  }

  Status AddConfiguration(const Sweep& configurations, const Combination& combination,
                          std::vector<Details> finals) {
    const Tuning& tuning = sweep_.tuning();
    rung_before_.clear();
    PlannedRun final_run;  // of any seed; all are of one size
    for (const Details& details : finals) {
      ELASTOR_ASSIGN_OR_RETURN(final_run, MakeRun(configurations, combination, details));
      if (std::ranges::find(tuning.seeds(), final_run.seed) == tuning.seeds().end()) continue;
      return UserError(StrCat("tuning: seeds: ", final_run.seed, " is run ", final_run.folder,
                              "'s, too; expected seeds that no final run has"));
    }
    ELASTOR_ASSIGN_OR_RETURN(const TuningState state, Tune(tuning, [&](const Trial& trial) {
                               return AddTrial(configurations, combination, trial);
                             }));
    std::vector<std::string> labels;
    for (const Point* point : combination.points) labels.push_back(point->label());
    TunedConfiguration& tuned = plan_.tuned.emplace_back();
    tuned.name = Join(labels, " ");
    tuned.failure = state.failure;
    if (state.chosen.empty()) {
      plan_.later.push_back({final_run, static_cast<int64_t>(finals.size())});
      AddTrialsToCome(state, final_run);
      return OkStatus();
    }
    const std::vector<std::string> chosen = Assignments(state.chosen);
    tuned.chosen = Join(chosen, " ");
    tuned.metric = metric_.name;
    tuned.value = metric_.larger_is_better ? -state.loss : state.loss;
    tuned.bound = state.bound;
    tuned.warning = state.warning;
    for (Details& details : finals) {
      details.set.insert(details.set.end(), chosen.begin(), chosen.end());
      details.warning = state.warning;
      ELASTOR_ASSIGN_OR_RETURN(PlannedRun run, MakeRun(configurations, combination, details));
      ELASTOR_RETURN_IF_ERROR(Add(std::move(run)));
    }
    return OkStatus();
  }

  std::vector<std::string> Assignments(const std::vector<std::string>& values) const {
    std::vector<std::string> assignments;
    for (size_t k = 0; k < values.size(); ++k) {
      assignments.push_back(sweep_.tuning().field(static_cast<int>(k)).field() + "=" + values[k]);
    }
    return assignments;
  }

  // A run for every seed of the tuning; their mean loss once all are there.
  StatusOr<TrialOutcome> AddTrial(const Sweep& configurations, const Combination& combination,
                                  const Trial& trial) {
    const Tuning& tuning = sweep_.tuning();
    Details details = {.stage = Stage::kTune, .rung = trial.rung};
    for (size_t k = 0; k < trial.values.size(); ++k) {
      const std::string& field = tuning.field(static_cast<int>(k)).field();
      details.labels.push_back(field.substr(field.rfind('.') + 1) + trial.values[k]);
    }
    details.labels.push_back(StrCat("rung", trial.rung + 1));
    TrialOutcome mean = {TrialOutcome::State::kMeasured, 0};
    for (const int64_t seed : tuning.seeds()) {
      details.set = Assignments(trial.values);
      details.set.push_back(StrCat(kSeedField, "=", seed));
      details.seed_label = StrCat("seed", seed);
      ELASTOR_ASSIGN_OR_RETURN(PlannedRun run, MakeRun(configurations, combination, details));
      TrialOutcome outcome = OutcomeOf(run.folder);
      if (mean.state != TrialOutcome::State::kFailed &&
          outcome.state != TrialOutcome::State::kMeasured) {
        mean.state = outcome.state;
        mean.why = std::move(outcome.why);
      }
      mean.loss += outcome.loss / tuning.seeds_size();
      mean.minutes += outcome.minutes;
      const auto there = there_.find(HashOfFolder(run.folder));
      std::string& last = rung_before_[details.set];
      run.continues = std::exchange(last, there == there_.end() ? run.folder : there->second);
      ELASTOR_RETURN_IF_ERROR(Add(std::move(run)));
    }
    return mean;
  }

  TrialOutcome OutcomeOf(const std::string& folder) {
    using State = TrialOutcome::State;
    const auto found = there_.find(HashOfFolder(folder));
    if (found == there_.end()) return {State::kOpen};
    const std::optional<Summary> result = ReadResult(files_, found->second);
    constexpr double kNone = std::numeric_limits<double>::infinity();
    if (result) {
      constexpr double kSecondsPerMinute = 60;
      const double minutes = result->wall_s / kSecondsPerMinute;
      metric_ = MetricOf(sweep_.tuning(), *result);
      if (metric_.value) return {State::kMeasured, metric_.loss(), minutes};
      if (!Finite(result->metrics.logloss)) return {State::kMeasured, kNone, minutes};
      return {State::kFailed, 0, minutes,
              "a trial has no " + metric_.name + " on the validation split"};
    }
    const Attempts attempts = ReadAttempts(files_.Attempts(found->second));
    if (StateOf(attempts, false) != RunState::kFailed) return {State::kOpen};
    if (attempts.exit_code == static_cast<int>(StatusCode::kDiverged)) {
      return {State::kMeasured, kNone};
    }
    return {State::kFailed};
  }

  void AddTrialsToCome(const TuningState& state, const PlannedRun& final_run) {
    for (size_t rung = 0; rung < state.most_to_come.size(); ++rung) {
      LaterRuns later = {final_run, state.most_to_come[rung] * sweep_.tuning().seeds_size()};
      if (later.count == 0) continue;
      later.each.stage = Stage::kTune;
      later.each.steps = StepsOfRung(sweep_.tuning(), static_cast<int>(rung), final_run.steps);
      if (final_run.steps > 0) {
        later.each.samples = final_run.samples * later.each.steps / final_run.steps;
      }
      plan_.later.push_back(std::move(later));
    }
  }

  std::vector<std::string> Columns(const Sweep& sweep, const Combination& combination,
                                   const Details& details) const {
    std::map<std::string, std::string> values;
    values[kStageColumn] = StageName(details.stage);
    values[kWarningColumn] = details.warning;
    if (details.stage == Stage::kFinal) values[seed_axis_] = details.seed_label;
    for (int i = 0; i < sweep.axis_size(); ++i) {
      values[sweep.axis(i).name()] = combination.points[i]->label();
      for (const std::string& assignment : combination.points[i]->set()) {
        const auto [field, value] = Halves(assignment);
        values[field] = value;
      }
    }
    for (const std::string& assignment : details.set) {
      const auto [field, value] = Halves(assignment);
      values[field] = value;
    }
    std::vector<std::string> columns;
    for (const std::string& name : plan_.columns) columns.push_back(values[name]);
    return columns;
  }

  const Sweep& sweep_;
  const SweepFiles& files_;
  Plan& plan_;
  std::string seed_axis_;  // its name; empty: there is none
  const std::string numerics_ = NumericsInHashes(sweep_.resources().gpus() > 0 ? "cuda" : "cpu");
  std::map<std::string, std::string> there_;         // FoldersByHash
  std::map<std::string, std::string> runs_by_hash_;  // their folders
  // The configuration's trials: maps the values that a trial sets to its folder in the last rung so
  // far.
  std::map<std::vector<std::string>, std::string> rung_before_;
  TuningMetric metric_;  // of the last trial that was looked at
  RunSizes sizes_{sweep_.has_tuning()};
};

}  // namespace

StatusOr<Plan> MakePlan(const Sweep& sweep, const std::string& source, const SweepFiles& files) {
  Plan plan;
  plan.name = sweep.name().empty() ? std::filesystem::path(source).stem().string() : sweep.name();
  plan.columns = ColumnNames(sweep);
  const Status added = Planner(sweep, files, &plan).AddAll();
  if (!added.ok()) return Status(added.code(), source + ": " + added.message());
  return plan;
}

}  // namespace elastor
