#include "launcher/plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/file.h"
#include "core/base/numerics.h"
#include "launcher/sweep_file.h"
#include "nlohmann/json.hpp"
#include "trainer/data/dataset.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/describe.h"
#include "trainer/experiment/make_options.h"

namespace elastor {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kJsonl = ".jsonl";

// Of a process, as operations.md has it.
constexpr int64_t kLibraryBytes = 50'000'000;
constexpr int64_t kGigabyte = 1'000'000'000;
// A training step's work on a sample that no dense weight takes part in (its ids and embedding
// rows), in multiply-adds of the forward pass: measured on Criteo's 39 fields of width 20.
constexpr double kFixedMultiplyAdds = 45'000;
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
  return names;
}

// Data sets that runs share are opened once, models of one shape looked at once.
class Planner {
 public:
  Planner(const Sweep& sweep, Plan* plan) : sweep_(sweep), plan_(*plan) {}

  Status Add(const Combination& combination) {
    std::vector<std::string> labels;
    for (const Point* point : combination.points) labels.push_back(point->label());
    ELASTOR_ASSIGN_OR_RETURN(const Experiment experiment, Resolve(combination));
    ELASTOR_ASSIGN_OR_RETURN(const Data* data, OpenData(experiment));
    PlannedRun run;
    run.folder =
        FolderName(labels, RunHash(experiment, data->fingerprint, numerics_, sweep_.predictions()));
    const auto [same, added] = folders_.emplace(HashOfFolder(run.folder), run.folder);
    if (!added) {
      return UserError("runs " + same->second + " and " + run.folder +
                       " differ in no field that changes a result; expected every run once");
    }
    run.columns = Columns(combination);
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
    const TrainingConfig& training = experiment.training();
    const int64_t batch = training.batch_size();
    const int64_t steps_per_epoch = (data->info.rows[0] + batch - 1) / batch;
    run.steps = steps_per_epoch * training.epochs();
    if (training.max_steps() > 0) run.steps = std::min(run.steps, training.max_steps());
    run.samples = std::min(run.steps * batch, data->info.rows[0] * training.epochs());
    run.predictions = sweep_.predictions();
    run.experiment = ExperimentText(WithAbsolutePaths(experiment));
    plan_.runs.push_back(std::move(run));
    return OkStatus();
  }

 private:
  struct Data {
    DatasetInfo info;
    std::string fingerprint;
  };

  StatusOr<Experiment> Resolve(const Combination& combination) {
    ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, MakeExperiment(sweep_, combination));
    if (sweep_.resources().threads() > 0) {
      experiment.mutable_parallel()->set_threads(sweep_.resources().threads());
    }
    CheckpointConfig* checkpoint = experiment.mutable_checkpoint();
    if (!checkpoint->has_every_steps() && !checkpoint->has_every_minutes()) {
      checkpoint->set_every_minutes(kCheckpointMinutes);
    }
    ResolveDefaults(&experiment);
    const Status valid = ValidateExperiment(WithAbsolutePaths(experiment));
    if (valid.ok()) return experiment;
    std::string labels;
    for (const Point* point : combination.points) labels += " " + point->label();
    return UserError("run" + labels + ": " + valid.message());
  }

  StatusOr<const Data*> OpenData(const Experiment& experiment) {
    const std::string& path = experiment.data().path();
    const auto known = data_.find(path);
    if (known != data_.end() && !path.empty()) return &known->second;
    Data data = {AssumedData(experiment.data().shape()), ""};
    if (!path.empty()) {
      ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, Dataset::Open(path));
      data = {dataset->info(), dataset->fingerprint()};
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

  std::vector<std::string> Columns(const Combination& combination) const {
    std::map<std::string, std::string> values;
    for (int i = 0; i < sweep_.axis_size(); ++i) {
      values[sweep_.axis(i).name()] = combination.points[i]->label();
      for (const std::string& assignment : combination.points[i]->set()) {
        const auto [field, value] = Halves(assignment);
        values[field] = value;
      }
    }
    std::vector<std::string> columns;
    for (const std::string& name : plan_.columns) columns.push_back(values[name]);
    return columns;
  }

  const Sweep& sweep_;
  Plan& plan_;
  const std::string numerics_ = NumericsFingerprint(sweep_.resources().gpus() > 0 ? "cuda" : "cpu");
  std::map<std::string, std::string> folders_;  // by hash
  std::map<std::string, Data> data_;            // by path
  std::map<std::string, RunFigures> figures_;
};

std::string Gigabytes(int64_t bytes) {
  std::ostringstream text;
  text.precision(3);
  text << static_cast<double>(bytes) / 1e9 << " GB";
  return text.str();
}

Status DamagedPlan(const std::string& path, const std::string& what) {
  return UserError(path + ": " + what + "; expected the plan that a launcher wrote");
}

}  // namespace

int64_t PlannedRun::bytes() const {
  return std::max<int64_t>(ranks * (bytes_of_rank + kLibraryBytes), memory_gb * kGigabyte);
}

double PlannedRun::cost() const {
  return static_cast<double>(samples) * (static_cast<double>(multiply_adds) + kFixedMultiplyAdds);
}

StatusOr<Plan> MakePlan(const Sweep& sweep, const std::string& source) {
  Plan plan;
  plan.name = sweep.name().empty() ? std::filesystem::path(source).stem().string() : sweep.name();
  plan.columns = ColumnNames(sweep);
  Planner planner(sweep, &plan);
  for (const Combination& combination : Product(sweep)) {
    const Status added = planner.Add(combination);
    if (!added.ok()) return Status(added.code(), source + ": " + added.message());
  }
  return plan;
}

std::string Misfit(const PlannedRun& run, const Machine& machine) {
  const auto cores = static_cast<int>(machine.cores.size());
  if (run.cores() > cores) {
    return "needs " + std::to_string(run.cores()) + " cores (" + std::to_string(run.ranks) +
           " ranks of " + std::to_string(run.threads) + " threads), host " + machine.host +
           " gives " + std::to_string(cores);
  }
  if (run.nodes > 1) {
    return "needs " + std::to_string(run.nodes) + " nodes; expected resources.nodes=1, or " +
           "--scheduler=slurm";
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
  const std::vector<std::string> mpirun = {
      "mpirun",          "-q",        "-np",  std::to_string(run.ranks),
      "--oversubscribe", "--bind-to", "none", "setpriv",
      "--pdeathsig",     "KILL"};
  command.insert(command.begin(), mpirun.begin(), mpirun.end());
  return command;
}

std::string Joined(std::span<const std::string> command) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  return line;
}

Status WritePlan(const Plan& plan, const SweepFiles& files) {
  std::string text = Json{{"sweep", plan.name}, {"columns", plan.columns}}.dump() + "\n";
  for (const PlannedRun& run : plan.runs) {
    text += Json{{"folder", run.folder},
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
                 {"samples", run.samples}}
                .dump() +
            "\n";
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
      const Json json = Json::parse(line);
      if (number == 1) {
        plan.name = json.at("sweep");
        plan.columns = json.at("columns").get<std::vector<std::string>>();
        continue;
      }
      PlannedRun run;
      run.folder = json.at("folder");
      run.columns = json.at("columns").get<std::vector<std::string>>();
      run.ranks = json.at("ranks");
      run.threads = json.at("threads");
      run.gpus = json.value("gpus", 0);
      run.nodes = json.value("nodes", 1);
      run.memory_gb = json.value("memory_gb", 0);
      run.minutes = json.value("minutes", 0);
      run.dense_parameters = json.at("dense_parameters");
      run.embedding_parameters = json.at("embedding_parameters");
      run.multiply_adds = json.at("multiply_adds");
      run.bytes_of_rank = json.at("bytes_of_rank");
      run.steps = json.at("steps");
      run.samples = json.at("samples");
      plan.runs.push_back(std::move(run));
    } catch (const Json::exception& error) {
      return DamagedPlan(files.Plan(), "line " + std::to_string(number) + " is damaged");
    }
  }
  if (number == 0) return DamagedPlan(files.Plan(), "is empty");
  return plan;
}

PlanChange AdoptFolders(const SweepFiles& files, Plan* plan) {
  std::map<std::string, std::string> there;  // folders by hash
  // A run that was refused has attempts and no folder.
  for (const std::string& directory : {files.root + "/attempts", files.Runs()}) {
    std::error_code none;
    for (std::filesystem::directory_iterator entry(directory, none), end; !none && entry != end;
         entry.increment(none)) {
      std::string name = entry->path().filename();
      if (name.ends_with(kJsonl)) name.resize(name.size() - kJsonl.size());
      if (const std::string hash = HashOfFolder(name); !hash.empty()) there[hash] = name;
    }
  }
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
