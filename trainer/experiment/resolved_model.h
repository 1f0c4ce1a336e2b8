#ifndef ELASTOR_TRAINER_EXPERIMENT_RESOLVED_MODEL_H_
#define ELASTOR_TRAINER_EXPERIMENT_RESOLVED_MODEL_H_

#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/task/task.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"

namespace elastor {

// The model that an experiment describes over the fields of a data set. Whoever needs a model of
// an experiment starts here, so that every program refuses the same pairs of both.
struct ResolvedModel {
  Task task;                      // the labels that are learned
  Graph graph;                    // from the fields' embeddings to the logits
  std::vector<TableSpec> tables;  // one per categorical field that does not share another's table
  std::vector<FieldSpec> fields;  // and behind them one per position of an encoded sequence
};

// Makes the model for training. For inference pass ForInference(experiment): its graph applies
// blocks evaluation.iterations times; task, tables and fields are the same. REQUIRES: the
// experiment is resolved and valid (config.h). User error in one line when the data lack a label or
// a sequence that the experiment names.
StatusOr<ResolvedModel> ResolveModel(const Experiment& experiment, const DatasetInfo& data);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_RESOLVED_MODEL_H_
