#ifndef ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_
#define ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// Checks every field of a resolved experiment against its rule in experiment.proto, and the fields
// against each other. User error in one line naming the field, the value found and the value
// expected.
Status ValidateExperiment(const Experiment& experiment);

// Checks that a job of `ranks` ranks can run the experiment: every rank needs a leaf.
Status ValidateRanks(const Experiment& experiment, int ranks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_
