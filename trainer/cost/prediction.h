#ifndef ELASTOR_TRAINER_COST_PREDICTION_H_
#define ELASTOR_TRAINER_COST_PREDICTION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "embedding/shard_plan.h"
#include "trainer/cost/batch_demand.h"
#include "trainer/cost/machine.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"
#include "trainer/step/step_calls.h"

namespace elastor {

class Experiment;
class Machine;

// Predictions of more ranks are refused: their memory grows with the square of this number.
inline constexpr int kMostPredictedRanks = 4096;

// A search takes another plan than AUTO if it is predicted to be so much faster: smaller
// differences are within the errors of predictions (docs/results/cost_model.md).
inline constexpr double kLeastGain = 0.02;

// ParallelConfig::Plan below it place tables without a machine.
inline constexpr int kSimplePlans = 4;

// What a step of a job costs. Times are in seconds.
struct Prediction {
  int ranks = 1;
  int ranks_per_host = 1;
  int64_t batch_rows = 0;
  double step_seconds = 0;
  std::array<double, kStepParts> part_seconds{};  // of rank 0, with waits, as phase_s
  // On rank 0: inside calls, while the rank computes, and while it does nothing else.
  double hidden_seconds = 0, exposed_seconds = 0;
  Sent rank0_sent, all_sent;  // in one step
  Sent between_hosts;         // of all_sent, to ranks of other hosts
  // The rank with most work of its own, and the part in which it exceeds the mean most.
  int slowest_rank = 0;
  double slowest_work = 0, mean_work = 0;
  StepPart slowest_part = StepPart::kCompute;

  double samples_per_s() const { return static_cast<double>(batch_rows) / step_seconds; }
};

// What plan PLANNED has chosen.
struct PlanSearch {
  std::vector<Placement> placements;  // by table
  Prediction prediction;
  // Of the simple plans; none for a plan beyond parallel.memory_budget_bytes.
  std::array<std::optional<Prediction>, kSimplePlans> simple;
};

// Predicts steps of one experiment on one machine. Batches are made once for each size.
class Predictor {
 public:
  // dataset: null if the experiment has only data.shape; then ids are uniform, one a field.
  // experiment, machine and model outlive the object.
  Predictor(const Experiment* experiment, const Machine* machine, const ResolvedModel* model,
            const DatasetInfo* info, const Dataset* dataset);

  // Predicts with the experiment's plan. ranks_per_host 0: as many as have a unit for each of their
  // threads. User error in one line if the machine lacks a link, or the plan or the batch cannot
  // be.
  StatusOr<Prediction> Predict(int ranks, int ranks_per_host, int64_t batch_rows);
  StatusOr<Prediction> PredictPlan(const ShardPlan& plan, int ranks_per_host, int64_t batch_rows);
  // Predicts every simple plan, and chooses the fastest.
  StatusOr<PlanSearch> ComparePlans(int ranks, int ranks_per_host, int64_t batch_rows);
  // Chooses a placement for every table within parallel.memory_budget_bytes: it begins with the
  // best simple plan, and keeps each change that shortens the predicted step; AUTO stays if less
  // than kLeastGain is gained in all. It tries fewer changes where predictions are dear (many
  // ranks, large batches). A keyed table without a limit is never replicated. User error as of
  // Predict.
  StatusOr<PlanSearch> SearchPlan(int ranks, int ranks_per_host, int64_t batch_rows);
  double measured_share() const { return work_.measured_share(); }
  const std::vector<TableSpec>& tables() const { return model_->tables; }
  // What makes predictions worse, one line each.
  std::vector<std::string> Warnings() const;

 private:
  // Returns the batch that is predicted, and behind it, with first_ids_first, that of the step
  // before.
  StatusOr<std::span<const SparseBatch>> BatchesOf(int64_t rows);

  const Experiment* experiment_;
  const Machine* machine_;
  const ResolvedModel* model_;
  const DatasetInfo* info_;
  const Dataset* dataset_;
  const Graph graph_;  // as the executor runs it
  const StatusOr<double> product_rate_;
  const WorkTimes work_;
  std::vector<SparseBatch> batches_;  // of the last size
  int64_t batch_rows_ = 0;
  // The last search, of a batch of so many rows.
  std::optional<PlanSearch> searched_;
  int64_t searched_rows_ = 0;
};

// Returns `prediction` of mode describe: the step on `ranks` ranks, and what an epoch takes.
StatusOr<Json> PredictionJson(Predictor* predictor, const Experiment& experiment,
                              const Machine& machine, const DatasetInfo& info, int ranks,
                              int ranks_per_host);

// Predictions for 1, 2, 4, ... ranks up to a number: with the whole batch (strong scaling), and
// with a batch that grows with the ranks and is whole at the last (weak scaling).
struct Scaling {
  std::vector<Prediction> strong, weak;
};
StatusOr<Scaling> PredictScaling(Predictor* predictor, const Experiment& experiment, int ranks,
                                 int ranks_per_host);
std::string ScalingTable(const Scaling& scaling);  // for people
// Returns a picture, samples/s over ranks, as the text of an SVG file.
std::string ScalingPicture(const Scaling& scaling, const std::string& machine);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_PREDICTION_H_
