#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_DATA_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_DATA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/proto/sweep.pb.h"
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

// Result of a Sweep.gap_test between two arms, from their finished runs.
struct TestedGap {
  struct Arm {
    std::string name;
    std::vector<LossAndGapRun> runs;
  };
  Arm arms[2];
  std::string why_not;  // in place of the test
  EnergyTest test;
};

// A run of the sweep with all facts in its files.
struct SweepRun {
  PlannedRun plan;
  RunStatus status;
  // Name of the series within which its sizes and seed are compared: "RankElastor".
  std::string series;
  // Facts about the run for the laws. `value` is not set; `sizes` come from the plan and the
  // experiment.
  int64_t seed = 0;
  std::map<std::string, double> sizes;
  std::optional<double> learning_rate;
  std::optional<double> normalized_entropy;
  // Metrics of the final weights, by split: those of the summary, and of the last evaluation of
  // another split (with best weights put back: of the evaluation that found them).
  std::map<std::string, MetricValues> splits;
  bool best_weights = false;
  int64_t first_step = 0, last_step = 0;                // steps of first_ranks and last_ranks
  std::vector<StageRank> first_ranks, last_ranks;       // in the model's order
  std::map<int64_t, std::vector<LayerKernel>> kernels;  // by step, layers in the model's order
  std::string command;                                  // command line that repeats the run

  bool done() const { return status.state == RunState::kDone; }
  // Returns the metric as a loss, to which laws are fitted. None if the run is not done or did not
  // measure it.
  std::optional<double> Loss(Metric metric) const;
};

// A sweep's folder.
struct SweepData {
  std::string name;
  std::vector<std::string> columns;  // the plan's columns
  // Returns the tuned fields' columns: those between "stage" and "tuning_warning".
  std::vector<size_t> TunedColumns() const;
  // Returns whether a column says how a run was tuned, and not what it is.
  bool IsOfTuning(size_t column) const;
  std::vector<SweepRun> runs;    // the final ones, in the plan's order
  std::vector<SweepRun> trials;  // those of the tuning; only plan and status are set
  std::vector<TunedConfiguration> tuned;
  Tuning tuning;                    // as asked for
  std::vector<std::string> series;  // in the order of their first runs
  std::string root;
  std::string sweep_text;  // sweep.textproto, as run
  // Names and values, over all runs, that tell the reader how the numbers were made.
  std::vector<std::pair<std::string, std::string>> provenance;
  std::string evaluated;  // "13,714 rows of the validation split"
  std::vector<TestedGap> gaps;
  std::string made;  // when, where and by which command the runs were made, a sentence

  int Count(RunState state) const;
};

// Reads the folder's files alone. User error when it holds no sweep.
StatusOr<SweepData> ReadSweepData(const SweepFiles& files);

// Gives every run its series. Runs of one series differ only in seed and size. Series differ in the
// kind of model; in varied fields whose values are no numbers; and in number fields if two runs
// would otherwise have the same series, sizes and seed. A learning rate that was chosen for every
// size tells no series apart.
void AssignSeries(const std::vector<std::string>& kinds, SweepData* data);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_DATA_H_
