#ifndef ELASTOR_TRAINER_EXPERIMENT_MAKE_OPTIONS_H_
#define ELASTOR_TRAINER_EXPERIMENT_MAKE_OPTIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/kernels/small_rows.h"
#include "embedding/embedding_options.h"
#include "embedding/row_rules.h"
#include "embedding/shard_plan.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"
#include "trainer/step/step_options.h"

namespace elastor {

// Converts an experiment into the options of the program's parts. REQUIRES: experiments are
// resolved and valid, and FindSequences and FindRequestFields find their fields in the data.

// Returns which labels of the data are learned. User error in one line when task, or the monitor's
// label, names one that the data does not have.
StatusOr<Task> MakeTask(const Experiment& experiment, const DatasetInfo& data);
// Returns the index, among the learned labels, of the one that training.monitor.label names; 0
// without a name.
int64_t MonitoredLabel(const Experiment& experiment, const Task& task);

// Makes the graph of the experiment's model over the data's fields. MakeGraph and
// MakeTrainStepOptions REQUIRE that MakeTask accepts the experiment and the data.
Graph MakeGraph(const Experiment& experiment, const DatasetInfo& data);

// Returns the width of an embedding table's rows: embedding.width, plus 1 if the model has a
// first-order weight.
int64_t TableWidth(const Experiment& experiment);
// Makes one table per categorical field that does not share another field's table, and behind these
// the tables of their admission.
std::vector<TableSpec> MakeTables(const Experiment& experiment, const DatasetInfo& data);
// Returns the rules that the table of a keyed field has; none if embedding.tables does not name it.
RowRules RulesOf(const EmbeddingConfig& embedding, const std::string& field);
// Checks embedding.tables against the data, and whether the experiment can have keyed tables. User
// error.
Status CheckKeyedTables(const Experiment& experiment, const DatasetInfo& data);
// Makes the data's fields, and behind them one field per position of an encoded sequence.
std::vector<FieldSpec> MakeFields(const Experiment& experiment, const DatasetInfo& data);

// Returns whether the experiment asks for delta checkpoints.
bool WritesDeltas(const CheckpointConfig& config);
// Returns the bytes of a rank's state that may be copied in memory for a checkpoint.
int64_t StagingBytes(const Experiment& experiment);
// Returns how publications have the weights of embedding rows.
RowFormat PublishedRows(const PublishConfig& publish);
// Returns whether a run on the CPU publishes deltas, not only bases.
bool PublishesDeltas(const Experiment& experiment);
EmbeddingOptions MakeEmbeddingOptions(const Experiment& experiment, const DatasetInfo& data);
WireFormats MakeWireFormats(const ParallelConfig& config);

SparseOptimizerOptions MakeSparseOptimizer(const OptimizerConfig& config);
Precision PrecisionOf(const TrainingConfig& training);
TrainStepOptions MakeTrainStepOptions(const Experiment& experiment, const DatasetInfo& data);
RowOrder MakeRowOrder(const Experiment& experiment);
// Returns the rows per training epoch: data.train_rows, or the whole split; 0 without data. User
// error in one line when the split has fewer.
StatusOr<int64_t> TrainingRows(const Experiment& experiment, const DatasetInfo& data);

// Makes the shard plan of the embeddings' weights and slots that the experiment asks for. planned:
// the placements that plan PLANNED has chosen (trainer/cost/planned_tables.h). Where nobody
// chooses, as in evaluations and estimates of memory, it is empty and AUTO stands in.
StatusOr<ShardPlan> MakePlan(const Experiment& experiment, const std::vector<TableSpec>& tables,
                             int ranks, std::span<const Placement> planned = {});

// Returns the data set that --mode=describe assumes when no data.path is given.
DatasetInfo AssumedData(const DataShape& shape);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_MAKE_OPTIONS_H_
