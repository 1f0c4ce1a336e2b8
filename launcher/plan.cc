#include "launcher/plan.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/file.h"
#include "core/base/json_entry.h"
#include "core/base/numerics.h"
#include "core/process/job_process.h"
#include "launcher/sweep_file.h"
#include "launcher/tuning.h"
#include "nlohmann/json.hpp"
#include "trainer/data/dataset.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/describe.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/overrides.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_records.h"

namespace elastor {
namespace {

constexpr std::string_view kJsonl = ".jsonl";
constexpr char kSeedField[] = "training.seed";
constexpr char kStageColumn[] = "stage", kWarningColumn[] = "tuning_warning";

// Memory of the libraries in one process (docs/use/running.md).
constexpr int64_t kLibraryBytes = 50'000'000;
constexpr int64_t kGigabyte = 1'000'000'000;
// Largest integer that a plan file may hold.
constexpr int64_t kMostInteger = int64_t{1} << 60;
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

// Folders by their hashes. A run that was refused has attempts and no folder.
StatusOr<std::map<std::string, std::string>> FoldersByHash(const SweepFiles& files) {
  std::map<std::string, std::string> there;
  for (const std::string& directory : {files.root + "/attempts", files.Runs()}) {
    ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(directory));
    for (std::string name : names) {
      if (name.ends_with(kJsonl)) name.resize(name.size() - kJsonl.size());
      if (const std::string hash = HashOfFolder(name); !hash.empty()) there[hash] = name;
    }
  }
  return there;
}

std::string Spaced(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Data sets that runs share are opened once, models of one shape looked at once.
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
  struct Data {
    DatasetInfo info;
    std::string fingerprint;
  };
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
    if (!valid.ok()) return UserError("run " + Spaced(labels) + ": " + valid.message());
    ELASTOR_ASSIGN_OR_RETURN(const Data* data, OpenData(experiment));
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
        return UserError("run " + Spaced(labels) + ": tuning: has 0 steps in rung " +
                         std::to_string(details.rung + 1) + ", of " + std::to_string(run.steps) +
                         "; expected fewer rungs, a smaller eta or a larger share");
      }
      if (steps < run.steps) experiment.mutable_training()->set_max_steps(steps);
      run.steps = steps;
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
    ELASTOR_ASSIGN_OR_RETURN(const RunFigures* figures, FiguresOf(experiment, *data, run.ranks));
    run.dense_parameters = figures->dense_parameters;
    run.embedding_parameters = figures->embedding_parameters;
    run.multiply_adds = figures->multiply_adds;
    run.bytes_of_rank = figures->sure_bytes;
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
      return UserError("tuning: seeds: " + std::to_string(final_run.seed) + " is run " +
                       final_run.folder + "'s, too; expected seeds that no final run has");
    }
    ELASTOR_ASSIGN_OR_RETURN(const TuningState state, Tune(tuning, [&](const Trial& trial) {
                               return AddTrial(configurations, combination, trial);
                             }));
    std::vector<std::string> labels;
    for (const Point* point : combination.points) labels.push_back(point->label());
    TunedConfiguration& tuned = plan_.tuned.emplace_back();
    tuned.name = Spaced(labels);
    tuned.failure = state.failure;
    if (state.chosen.empty()) {
      plan_.later.push_back({final_run, static_cast<int64_t>(finals.size())});
      AddTrialsToCome(state, final_run);
      return OkStatus();
    }
    const std::vector<std::string> chosen = Assignments(state.chosen);
    tuned.chosen = Spaced(chosen);
    tuned.loss = state.loss;
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
    details.labels.push_back("rung" + std::to_string(trial.rung + 1));
    TrialOutcome mean = {TrialOutcome::State::kMeasured, 0};
    for (const int64_t seed : tuning.seeds()) {
      details.set = Assignments(trial.values);
      details.set.push_back(std::string(kSeedField) + "=" + std::to_string(seed));
      details.seed_label = "seed" + std::to_string(seed);
      ELASTOR_ASSIGN_OR_RETURN(PlannedRun run, MakeRun(configurations, combination, details));
      const TrialOutcome outcome = OutcomeOf(run.folder);
      if (mean.state != TrialOutcome::State::kFailed &&
          outcome.state != TrialOutcome::State::kMeasured) {
        mean.state = outcome.state;
      }
      mean.loss += outcome.loss / tuning.seeds_size();
      const auto there = there_.find(HashOfFolder(run.folder));
      std::string& last = rung_before_[details.set];
      run.continues = std::exchange(last, there == there_.end() ? run.folder : there->second);
      ELASTOR_RETURN_IF_ERROR(Add(std::move(run)));
    }
    return mean;
  }

  TrialOutcome OutcomeOf(const std::string& folder) const {
    using State = TrialOutcome::State;
    const auto found = there_.find(HashOfFolder(folder));
    if (found == there_.end()) return {State::kOpen};
    const std::optional<Summary> result = ReadResult(files_, found->second);
    constexpr double kNone = std::numeric_limits<double>::infinity();
    if (result) return {State::kMeasured, Finite(result->metrics.logloss).value_or(kNone)};
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

  StatusOr<const Data*> OpenData(const Experiment& experiment) {
    const std::string& path = experiment.data().path();
    const auto known = data_.find(path);
    if (known != data_.end() && !path.empty()) return &known->second;
    Data data = {AssumedData(experiment.data().shape()), ""};
    if (!path.empty()) {
      ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, Dataset::Open(path));
      data = {dataset->info(), dataset->fingerprint()};
      if (sweep_.has_tuning() && dataset->rows(Split::kValidation) == 0) {
        return UserError("tuning: " + path +
                         " has no rows for validation; expected some, to choose values by");
      }
    }
    return &(data_[path] = std::move(data));
  }

  // Seed and learning rate, which many runs differ in alone, are nothing to them.
  StatusOr<const RunFigures*> FiguresOf(const Experiment& experiment, const Data& data, int ranks) {
    Experiment key = experiment;
    key.clear_name();
    key.mutable_training()->clear_seed();
    key.mutable_optimizer()->clear_learning_rate();
    const std::string bytes = key.SerializeAsString();
    const auto known = figures_.find(bytes);
    if (known != figures_.end()) return &known->second;
    ELASTOR_ASSIGN_OR_RETURN(const RunFigures figures,
                             DescribeFigures(experiment, data.info, ranks));
    return &(figures_[bytes] = figures);
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
  const std::string numerics_ = NumericsFingerprint(sweep_.resources().gpus() > 0 ? "cuda" : "cpu");
  std::map<std::string, std::string> there_;         // FoldersByHash
  std::map<std::string, std::string> runs_by_hash_;  // their folders
  // The configuration's trials: maps the values that a trial sets to its folder in the last rung so
  // far.
  std::map<std::vector<std::string>, std::string> rung_before_;
  std::map<std::string, Data> data_;  // by path
  std::map<std::string, RunFigures> figures_;
};

std::string Gigabytes(int64_t bytes) {
  std::ostringstream text;
  text.precision(3);
  text << static_cast<double>(bytes) / 1e9 << " GB";
  return text.str();
}

Json ToJson(const PlannedRun& run) {
  return {{"folder", run.folder},
          {"stage", StageName(run.stage)},
          {"model", run.model},
          {"seed", run.seed},
          {"columns", run.columns},
          {"ranks", run.ranks},
          {"threads", run.threads},
          {"gpus", run.gpus},
          {"nodes", run.nodes},
          {"memory_gb", run.memory_gb},
          {"minutes", run.minutes},
          {"dense_parameters", run.dense_parameters},
          {"embedding_parameters", run.embedding_parameters},
          {"multiply_adds", run.multiply_adds},
          {"bytes_of_rank", run.bytes_of_rank},
          {"steps", run.steps},
          {"samples", run.samples}};
}

// These throw as JsonEntry does.
std::vector<std::string> TextsOf(const JsonEntry& json) {
  std::vector<std::string> texts;
  for (const JsonEntry& text : json.Elements()) texts.push_back(text.Text());
  return texts;
}

PlannedRun RunOf(const JsonEntry& json) {
  // Products of two, and sums over a plan, are within their types.
  constexpr int64_t kMostRanks = 1 << 15, kMostMinutes = 1 << 24, kMostBytes = int64_t{1} << 46,
                    kMostSeed = std::numeric_limits<int64_t>::max();
  const auto integer = [&](const char* name, int64_t least, int64_t most) {
    return json.Member(name).Integer(least, most);
  };
  const auto small = [&](const char* name, int64_t least, int64_t most) {
    return static_cast<int>(integer(name, least, most));
  };
  PlannedRun run;
  run.folder = json.Member("folder").Text();
  run.stage = json.Member("stage").Text() == StageName(Stage::kTune) ? Stage::kTune : Stage::kFinal;
  run.model = json.Member("model").Text();
  run.seed = integer("seed", std::numeric_limits<int64_t>::min(), kMostSeed);
  run.columns = TextsOf(json.Member("columns"));
  run.ranks = small("ranks", 1, kMostRanks);
  run.threads = small("threads", 1, kMostRanks);
  run.gpus = small("gpus", 0, kMostRanks);
  run.nodes = small("nodes", 1, run.ranks);
  run.memory_gb = small("memory_gb", 0, kMostBytes / kGigabyte);
  run.minutes = small("minutes", 0, kMostMinutes);
  run.dense_parameters = integer("dense_parameters", 0, kMostInteger);
  run.embedding_parameters = integer("embedding_parameters", 0, kMostInteger);
  run.multiply_adds = integer("multiply_adds", 0, kMostInteger);
  run.bytes_of_rank = integer("bytes_of_rank", 0, kMostBytes);
  run.steps = integer("steps", 0, kMostInteger);
  run.samples = integer("samples", 0, kMostInteger);
  return run;
}

Status DamagedPlan(const std::string& path, const std::string& what) {
  return UserError(path + ": " + what + "; expected the plan that a launcher wrote");
}

}  // namespace

const char* StageName(Stage stage) { return stage == Stage::kTune ? "tune" : "final"; }

int64_t PlannedRun::bytes() const {
  return std::max<int64_t>(ranks * (bytes_of_rank + kLibraryBytes), memory_gb * kGigabyte);
}

double PlannedRun::cost() const {
  return static_cast<double>(samples) * (static_cast<double>(multiply_adds) + kFixedMultiplyAdds);
}

StatusOr<Plan> MakePlan(const Sweep& sweep, const std::string& source, const SweepFiles& files) {
  Plan plan;
  plan.name = sweep.name().empty() ? std::filesystem::path(source).stem().string() : sweep.name();
  plan.columns = ColumnNames(sweep);
  const Status added = Planner(sweep, files, &plan).AddAll();
  if (!added.ok()) return Status(added.code(), source + ": " + added.message());
  return plan;
}

Status ContinueTrials(const Plan& plan, const SweepFiles& files) {
  namespace fs = std::filesystem;
  for (const PlannedRun& run : plan.runs) {
    const fs::path from = files.Run(run.continues) + "/";
    const fs::path to = files.Run(run.folder), copy = files.Run("continued");
    std::error_code error;
    if (run.continues.empty() || fs::exists(to, error) ||
        !fs::exists(from / kCheckpointsFolder, error)) {
      continue;
    }
    // Files of checkpoints are never written to again; the trainer goes on in the others.
    fs::remove_all(copy, error);
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(copy));
    fs::copy(from / kCheckpointsFolder, copy / kCheckpointsFolder,
             fs::copy_options::recursive | fs::copy_options::create_hard_links, error);
    if (error) return MachineError(copy.string() + ": link: " + error.message());
    for (const char* name : {kMetricsFile, kExperimentFile, kPlanFile}) {
      ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(from / name));
      ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(copy / name, text));
    }
    fs::rename(copy, to, error);
    if (error) return MachineError(to.string() + ": rename: " + error.message());
  }
  return OkStatus();
}

std::string Misfit(const PlannedRun& run, const Machine& machine) {
  if (run.nodes > 1) {
    return "needs " + std::to_string(run.nodes) + " nodes; expected resources.nodes=1, or " +
           "--scheduler=slurm";
  }
  const auto cores = static_cast<int>(machine.cores.size());
  if (run.cores() > cores) {
    return "needs " + std::to_string(run.cores()) + " cores (" + std::to_string(run.ranks) +
           " ranks of " + std::to_string(run.threads) + " threads), host " + machine.host +
           " gives " + std::to_string(cores);
  }
  const auto gpus = static_cast<int>(machine.gpus.size());
  if (run.all_gpus() > gpus) {
    return "needs " + std::to_string(run.all_gpus()) + " GPUs, host " + machine.host + " gives " +
           std::to_string(gpus);
  }
  if (run.bytes() > machine.memory_bytes) {
    return "needs at least " + Gigabytes(run.bytes()) + " of memory, host " + machine.host +
           " has " + Gigabytes(machine.memory_bytes);
  }
  return "";
}

std::vector<std::string> TrainerCommand(const PlannedRun& run, const SweepFiles& files,
                                        const std::string& trainer) {
  std::vector<std::string> command = {trainer, "--experiment=" + files.Experiment(run.folder),
                                      "--output_dir=" + files.Run(run.folder)};
  if (run.gpus > 0) command.push_back("--device=cuda");
  command.push_back("--tensorboard");
  if (!run.predictions.empty()) {
    command.push_back("--split=" + run.predictions);
    command.push_back("--predictions");
  }
  return command;
}

std::vector<std::string> LocalCommand(const PlannedRun& run, const SweepFiles& files,
                                      const std::string& trainer) {
  std::vector<std::string> command = TrainerCommand(run, files, trainer);
  if (run.ranks == 1) return command;
  // The run's cores are those of the process's affinity, which the ranks inherit. Ranks that
  // outlived an mpirun that is killed would hold the run's folder.
  command = EndingWithItsParent(command);
  const std::vector<std::string> mpirun = {
      "mpirun", "-q", "-np", std::to_string(run.ranks), "--oversubscribe", "--bind-to", "none"};
  command.insert(command.begin(), mpirun.begin(), mpirun.end());
  return command;
}

std::string Joined(std::span<const std::string> command) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  return line;
}

Status WritePlan(const Plan& plan, const SweepFiles& files) {
  Json tuned = Json::array();
  for (const TunedConfiguration& each : plan.tuned) {
    tuned.push_back({{"configuration", each.name},
                     {"chosen", each.chosen},
                     {"logloss", each.loss},
                     {"warning", each.warning},
                     {"failure", each.failure}});
  }
  Json later = Json::array();
  for (const LaterRuns& each : plan.later) {
    later.push_back({{"run", ToJson(each.each)}, {"count", each.count}});
  }
  const Json sweep = {
      {"sweep", plan.name}, {"columns", plan.columns}, {"tuned", tuned}, {"later", later}};
  std::string text = sweep.dump() + "\n";
  for (const PlannedRun& run : plan.runs) {
    text += ToJson(run).dump() + "\n";
  }
  return WriteFileAtomically(files.Plan(), text);
}

StatusOr<Plan> ReadPlan(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(files.Plan()));
  Plan plan;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      const Json json = ParseJson(line);
      const JsonEntry entry(json);
      if (number > 1) {
        plan.runs.push_back(RunOf(entry));
        if (plan.runs.back().columns.size() == plan.columns.size()) continue;
        entry.Member("columns").Wrong(std::to_string(plan.columns.size()) + " texts");
      }
      plan.name = entry.Member("sweep").Text();
      plan.columns = TextsOf(entry.Member("columns"));
      for (const JsonEntry& each : entry.Member("tuned").Elements()) {
        plan.tuned.push_back({each.Member("configuration").Text(), each.Member("chosen").Text(),
                              each.Member("logloss").Number(), each.Member("warning").Text(),
                              each.Member("failure").Text()});
      }
      for (const JsonEntry& each : entry.Member("later").Elements()) {
        plan.later.push_back(
            {RunOf(each.Member("run")), each.Member("count").Integer(0, kMostInteger)});
      }
    } catch (const std::string& mistake) {
      return DamagedPlan(files.Plan(), "line " + std::to_string(number) + ": " + mistake);
    }
  }
  if (number == 0) return DamagedPlan(files.Plan(), "is empty");
  return plan;
}

StatusOr<PlanChange> AdoptFolders(const SweepFiles& files, Plan* plan) {
  ELASTOR_ASSIGN_OR_RETURN(auto there, FoldersByHash(files));
  PlanChange change;
  for (PlannedRun& run : plan->runs) {
    const auto found = there.find(HashOfFolder(run.folder));
    if (found == there.end()) {
      ++change.fresh;
      continue;
    }
    run.folder = found->second;
    ++change.kept;
    there.erase(found);
  }
  for (const auto& [hash, folder] : there) change.left.push_back(folder);
  std::ranges::sort(change.left);
  return change;
}

}  // namespace elastor
