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

// A training step's work on a sample that no dense weight takes part in (its ids and embedding
// rows), in multiply-adds of the forward pass: measured on Criteo's 39 fields of width 20.
inline constexpr double kFixedMultiplyAdds = 45'000;

// Runs that are tuned by are no result of a sweep (Sweep.tuning).
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
  int gpus = 0;       // of a rank
  int nodes = 1;      // divides ranks
  int memory_gb = 0;  // of the run; 0: not said
  int minutes = 0;    // 0: not said
  int64_t dense_parameters = 0, embedding_parameters = 0;
  int64_t multiply_adds = 0;     // of a sample, forward
  int64_t bytes_of_rank = 0;     // surely touched, of the rank of which most is
  int64_t steps = 0;             // 0: not known, without data
  int64_t samples = 0;           // of all steps
  std::string experiment = {};   // as a text; empty in a plan that was read
  std::string predictions = {};  // Sweep.predictions; empty in a plan that was read
  // Of a trial: the folder of its own in the rung before, whose steps are its first; empty: none.
  // Empty in a plan that was read.
  std::string continues = {};

  int cores() const { return ranks * threads; }
  int all_gpus() const { return ranks * gpus; }
  int64_t bytes() const;  // of all ranks: what was said, else sure, with the libraries' own memory
  double cost() const;    // samples * (multiply_adds + kFixedMultiplyAdds)
};

// How far the tuning of a configuration is: open, over with values that were chosen, or failed.
struct TunedConfiguration {
  std::string name;     // the labels of its points
  std::string chosen;   // "optimizer.learning_rate=0.002"
  double loss = 0;      // of the chosen trial
  std::string warning;  // the chosen values are at the edge of what was tried
  std::string failure;
};

// Runs that are not known yet.
struct LaterRuns {
  PlannedRun each;    // without a folder; of its size
  int64_t count = 0;  // of the final stage exactly, of the other at most
};

struct Plan {
  std::string name;
  // The axes that have labels, then every field that an axis sets; of a sweep that tunes also
  // "stage", the tuned fields and "tuning_warning".
  std::vector<std::string> columns;
  std::vector<PlannedRun> runs;
  std::vector<TunedConfiguration> tuned;
  std::vector<LaterRuns> later;  // which depend on what these runs come to
};

// The runs of a loaded sweep that can be known by what its finished runs in `files` have come to:
// without a tuning all, else the trials whose rung can begin and the final runs of configurations
// that are tuned. The same files have the same plan. User error, in one line that begins with
// `source` (the sweep's path), for the first run that cannot be: a field that does not exist, an
// experiment that is refused, two runs of one and the same outcome.
StatusOr<Plan> MakePlan(const Sweep& sweep, const std::string& source,
                        const SweepFiles& files = {});

// Gives trials that have no folder yet the checkpoints of the rung before, to be resumed from.
Status ContinueTrials(const Plan& plan, const SweepFiles& files);

// Why the machine cannot run it, or empty: "needs 8 cores, host h gives 2".
std::string Misfit(const PlannedRun& run, const Machine& machine);

// The trainer with the arguments of a run; an attempt that goes on adds --resume.
std::vector<std::string> TrainerCommand(const PlannedRun& run, const SweepFiles& files,
                                        const std::string& trainer);
// The same with what starts the run's ranks on this machine.
std::vector<std::string> LocalCommand(const PlannedRun& run, const SweepFiles& files,
                                      const std::string& trainer);
std::string Joined(std::span<const std::string> command);  // as one types it

// plan.jsonl: the sweep's line, then a line a run.
Status WritePlan(const Plan& plan, const SweepFiles& files);
StatusOr<Plan> ReadPlan(const SweepFiles& files);

// What a sweep that is planned anew finds in its folder.
struct PlanChange {
  int kept = 0;                   // runs that have a folder, under their old name
  int fresh = 0;                  // all others
  std::vector<std::string> left;  // folders of runs that are no longer in the sweep
};
// Gives runs that have a folder already its name, whatever their labels are now.
StatusOr<PlanChange> AdoptFolders(const SweepFiles& files, Plan* plan);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_PLAN_H_
