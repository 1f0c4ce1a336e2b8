#ifndef ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_
#define ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// Every field of a resolved experiment: its rule in experiment.proto, and what the fields must be
// to each other. User error in one line naming the field, what was found and what is expected.
Status ValidateExperiment(const Experiment& experiment);

// Whether a job of `ranks` ranks can run it: every rank needs a leaf.
Status ValidateRanks(const Experiment& experiment, int ranks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_
