#ifndef ELASTOR_TRAINER_COST_ADVICE_H_
#define ELASTOR_TRAINER_COST_ADVICE_H_

#include "core/base/json.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"

namespace elastor {

class Experiment;
class Machine;

// Returns `advice` of mode describe: how to use the units of `ranks` ranks with the experiment's
// threads. It chooses one setting after the other by predicted steps, and holds the others: threads
// a rank (and so the ranks), the batch, virtual shards, a simple plan. The batch is the smallest of
// those tried with kEnoughOfMost of the most samples/s. Virtual shards are the most of those whose
// step is within kShardsMayCost of the fastest, so that more ranks can follow. What cannot be
// predicted is passed over. User error if nothing can. ranks_per_host: as of Predictor::Predict.
StatusOr<Json> AdviceJson(const Experiment& experiment, const Machine& machine,
                          const ResolvedModel& model, const DatasetInfo& info,
                          const Dataset* dataset, int ranks, int ranks_per_host);

inline constexpr double kEnoughOfMost = 0.9;
inline constexpr double kShardsMayCost = 0.01;

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_ADVICE_H_
