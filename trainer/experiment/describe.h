#ifndef ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_
#define ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_

#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// What --mode=describe prints, as indented JSON: parameters, FLOPs a sample, memory on the fullest
// rank and the shard plan for `ranks` ranks. Computes nothing of the data set but its shape.
StatusOr<std::string> Describe(const Experiment& experiment, const DatasetInfo& data, int ranks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_DESCRIBE_H_
