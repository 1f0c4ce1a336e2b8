#ifndef ELASTOR_TRAINER_EXPERIMENT_CONFIG_DEFAULTS_H_
#define ELASTOR_TRAINER_EXPERIMENT_CONFIG_DEFAULTS_H_

#include "configs/proto/experiment.pb.h"

namespace elastor {

// Fills in missing fields with the defaults that experiment.proto names, so that the file written
// beside the results shows every setting in force. Idempotent. REQUIRES: no fields of the first
// format (trainer/experiment/model_choice.h).
void ResolveDefaults(Experiment* experiment);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_CONFIG_DEFAULTS_H_
