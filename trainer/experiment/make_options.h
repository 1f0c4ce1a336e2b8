#ifndef ELASTOR_TRAINER_EXPERIMENT_MAKE_OPTIONS_H_
#define ELASTOR_TRAINER_EXPERIMENT_MAKE_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "embedding/embedding_options.h"
#include "embedding/shard_plan.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"
#include "trainer/step/step_options.h"

namespace elastor {

// From the experiment's words to the parts' own options. Experiments are resolved and valid, and
// FindSequences finds theirs in the data.

// Which labels of the data are learned. User error in one line when task, or the monitor's label,
// names one that the data does not have.
StatusOr<Task> MakeTask(const Experiment& experiment, const DatasetInfo& data);
// Place among the learned labels of the one that training.monitor.label names; 0 without a name.
int64_t MonitoredLabel(const Experiment& experiment, const Task& task);

// The graph of the experiment's model over the data's fields. This and MakeTrainStepOptions REQUIRE
// that MakeTask accepts the two.
Graph MakeGraph(const Experiment& experiment, const DatasetInfo& data);

// Of the rows of embedding tables: embedding.width and the model's first-order weight, if it has
// one.
int64_t TableWidth(const Experiment& experiment);
// One table a categorical field that shares no other's.
std::vector<TableSpec> MakeTables(const Experiment& experiment, const DatasetInfo& data);
// The data's fields; behind them a field for every position of an encoded sequence.
std::vector<FieldSpec> MakeFields(const Experiment& experiment, const DatasetInfo& data);

// Whether delta checkpoints are asked for.
bool WritesDeltas(const CheckpointConfig& config);
EmbeddingOptions MakeEmbeddingOptions(const Experiment& experiment, const DatasetInfo& data);

SparseOptimizerOptions MakeSparseOptimizer(const OptimizerConfig& config);
Precision PrecisionOf(const TrainingConfig& training);
TrainStepOptions MakeTrainStepOptions(const Experiment& experiment, const DatasetInfo& data);
RowOrder MakeRowOrder(const Experiment& experiment);
// Rows of an epoch of training: data.train_rows, or all of the split; 0 without data. User error in
// one line when the split has fewer.
StatusOr<int64_t> TrainingRows(const Experiment& experiment, const DatasetInfo& data);

// Weights and slots of embeddings, by the experiment's plan.
StatusOr<ShardPlan> MakePlan(const Experiment& experiment, const std::vector<TableSpec>& tables,
                             int ranks);

// The data set that --mode=describe assumes when no data.path is given.
DatasetInfo AssumedData(const DataShape& shape);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_MAKE_OPTIONS_H_
