#ifndef ELASTOR_LAUNCHER_PLAN_H_
#define ELASTOR_LAUNCHER_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"
#include "launcher/machine.h"
#include "launcher/run_folder.h"

namespace elastor {

// Work of a training step per sample without dense weights, for its ids and embedding rows, in
// multiply-adds of the forward pass. It was measured on Criteo's 39 fields of width 20.
inline constexpr double kFixedMultiplyAdds = 45'000;

// Stage of a run. Tuning runs are no result of a sweep (Sweep.tuning).
enum class Stage { kFinal, kTune };
const char* StageName(Stage stage);  // "final", "tune"

// One run of a sweep.
struct PlannedRun {
  std::string folder;  // FolderName
  Stage stage = Stage::kFinal;
  std::string model = {};  // as KindName has it
  int64_t seed = 0;
  std::vector<std::string> columns = {};  // by Plan::columns
  int ranks = 1, threads = 1;
  int gpus = 0;       // GPUs per rank
  int nodes = 1;      // divides ranks
  int memory_gb = 0;  // memory of the whole run; 0: not given
  int minutes = 0;    // time limit; 0: not given
  int64_t dense_parameters = 0, embedding_parameters = 0;
  int64_t multiply_adds = 0;     // per sample, forward pass
  int64_t bytes_of_rank = 0;     // memory that the largest rank is sure to touch
  int64_t steps = 0;             // 0: not known, without data
  int64_t samples = 0;           // samples of all steps
  std::string experiment = {};   // as a text; empty in a plan that was read
  std::string predictions = {};  // Sweep.predictions; empty in a plan that was read
  // For a trial: its folder in the previous rung, whose steps are its first steps; empty: none.
  // Empty in a plan that was read.
  std::string continues = {};

  int cores() const { return ranks * threads; }
  int all_gpus() const { return ranks * gpus; }
  int64_t bytes()
      const;            // memory of all ranks: the given one, else the sure one with the libraries'
  double cost() const;  // samples * (multiply_adds + kFixedMultiplyAdds)
};

// State of a configuration's tuning: open, finished with chosen values, or failed.
struct TunedConfiguration {
  std::string name;     // the labels of its points
  std::string chosen;   // "optimizer.learning_rate=0.002"
  double loss = 0;      // loss of the chosen trial
  std::string warning;  // the chosen values are at the edge of what was tried
  std::string failure;
};

// Runs that cannot be planned yet.
struct LaterRuns {
  PlannedRun each;    // without a folder; of its size
  int64_t count = 0;  // of the final stage exactly, of the other at most
};

struct Plan {
  std::string name;
  // Names of the axes that have labels, then every field that an axis sets. With tuning also
  // "stage", the tuned fields and "tuning_warning".
  std::vector<std::string> columns;
  std::vector<PlannedRun> runs;
  std::vector<TunedConfiguration> tuned;
  std::vector<LaterRuns> later;  // which depend on what these runs come to
};

// Plans the runs of a loaded sweep that its finished runs in `files` determine. Without tuning
// these are all runs. Else they are the trials whose rung can begin and the final runs of tuned
// configurations. The same files give the same plan. User error, in one line that begins with
// `source` (the sweep's path), for the first impossible run: a field that does not exist, an
// experiment that is refused, two runs with the same outcome.
StatusOr<Plan> MakePlan(const Sweep& sweep, const std::string& source,
                        const SweepFiles& files = {});

// Gives trials without a folder the checkpoints of the previous rung, from which they resume.
Status ContinueTrials(const Plan& plan, const SweepFiles& files);

// Returns why the machine cannot run a run, "needs 8 cores, host h gives 2", or empty.
std::string Misfit(const PlannedRun& run, const Machine& machine);

// Returns the trainer's command line for a run. An attempt that continues the run adds --resume.
std::vector<std::string> TrainerCommand(const PlannedRun& run, const SweepFiles& files,
                                        const std::string& trainer);
// Returns the command line that starts the run's ranks on this machine.
std::vector<std::string> LocalCommand(const PlannedRun& run, const SweepFiles& files,
                                      const std::string& trainer);
std::string Joined(std::span<const std::string> command);  // as one types it

// Writes plan.jsonl: the sweep's line, then one line per run.
Status WritePlan(const Plan& plan, const SweepFiles& files);
StatusOr<Plan> ReadPlan(const SweepFiles& files);

// Changes between a new plan and the runs already in the sweep's folder.
struct PlanChange {
  int kept = 0;                   // runs that have a folder, under their old name
  int fresh = 0;                  // all others
  std::vector<std::string> left;  // folders of runs that are no longer in the sweep
};
// Keeps the folder names of runs that already have a folder, whatever their labels are now.
StatusOr<PlanChange> AdoptFolders(const SweepFiles& files, Plan* plan);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_PLAN_H_
