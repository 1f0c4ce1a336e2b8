#ifndef ELASTOR_TRAINER_EXPERIMENT_CONFIG_DEFAULTS_H_
#define ELASTOR_TRAINER_EXPERIMENT_CONFIG_DEFAULTS_H_

#include "configs/proto/experiment.pb.h"

namespace elastor {

// Replaces what is unset by the defaults that experiment.proto names, and drops what the model's
// kind does not use, so that the file written beside the results says all that was in force.
// Idempotent.
void ResolveDefaults(Experiment* experiment);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_CONFIG_DEFAULTS_H_
