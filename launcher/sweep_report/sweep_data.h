#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_DATA_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_DATA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "launcher/comparison/energy_distance.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"
#include "launcher/scaling_law/runs.h"
#include "launcher/sweep_status.h"

namespace elastor {

// Effective ranks at one stage of a model, means over the measured rows.
struct StageRank {
  std::string stage;
  double stable = 0, entropy = 0;
  double most = 0;  // the smaller side of the stage's matrix
};

// The neural tangent kernel of a layer; without a condition number its least eigenvalue is not
// resolved.
struct LayerKernel {
  std::string layer;
  int64_t rows = 0, parameters = 0, rank = 0;
  double lambda_max = 0;
  std::optional<double> lambda_min, condition_number;
};

// Two arms of Sweep.gap_test, by their finished runs.
struct TestedGap {
  struct Arm {
    std::string name;
    std::vector<LossAndGapRun> runs;
  };
  Arm arms[2];
  std::string why_not;  // in place of the test
  EnergyTest test;
};

// A run of the sweep with all that its files say of it.
struct SweepRun {
  PlannedRun plan;
  RunStatus status;
  // What its sizes and seed are compared within: "RankElastor".
  std::string series;
  // Of the run; `value` is empty, `sizes` has what the plan and the experiment say.
  int64_t seed = 0;
  std::map<std::string, double> sizes;
  std::optional<double> learning_rate;
  std::optional<double> normalized_entropy;
  int64_t first_step = 0, last_step = 0;                // of the ranks
  std::vector<StageRank> first_ranks, last_ranks;       // in the model's order
  std::map<int64_t, std::vector<LayerKernel>> kernels;  // by step, layers in the model's order
  std::string command;                                  // that repeats it

  bool done() const { return status.state == RunState::kDone; }
  // As a loss, as laws are fitted to. None: not done, or not measured.
  std::optional<double> Loss(Metric metric) const;
};

// A sweep's folder.
struct SweepData {
  std::string name;
  std::vector<std::string> columns;  // of the plan
  std::vector<SweepRun> runs;        // the final ones, in the plan's order
  std::vector<std::string> series;   // in the order of their first runs
  std::string root;
  std::string sweep_text;  // sweep.textproto, as run
  // Names and values for the reader who wants to know what made the numbers, over all runs.
  std::vector<std::pair<std::string, std::string>> provenance;
  std::string evaluated;  // "13,714 rows of the validation split"
  std::vector<TestedGap> gaps;

  int Count(RunState state) const;
};

// Reads the folder's files alone. User error when it holds no sweep.
StatusOr<SweepData> ReadSweepData(const SweepFiles& files);

// Gives every run its series. Runs of one series differ in seed and size. What tells series apart:
// the kind of model; varied fields whose values are no numbers; and of those that are numbers the
// ones in which two runs of the same series, sizes and seed differ. A learning rate that was chosen
// for every size is none of these.
void AssignSeries(const std::vector<std::string>& kinds, SweepData* data);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_DATA_H_
