#ifndef ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_
#define ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_

#include <cstdint>
#include <span>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "embedding/shard_plan.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Returns the output of --mode=describe: parameters, FLOPs per sample, memory on
// the fullest rank and the shard plan for `ranks` ranks. ranks_per_host: as of MemoryPlan. Unless
// ntk_rows is 0, it adds the memory of mode ntk with that many rows. Uses only the shape of the
// data set. planned: as of MakePlan.
StatusOr<Json> Describe(const Experiment& experiment, const DatasetInfo& data, int ranks,
                        int ranks_per_host, int64_t ntk_rows,
                        std::span<const Placement> planned = {});

// The figures of a description by which runs are compared and packed.
struct RunFigures {
  int64_t dense_parameters = 0;
  int64_t embedding_parameters = 0;
  int64_t multiply_adds = 0;  // per sample, forward pass
  int64_t sure_bytes = 0;     // memory that is certainly touched, on the rank with the most
};
StatusOr<RunFigures> DescribeFigures(const Experiment& experiment, const DatasetInfo& data,
                                     int ranks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_
