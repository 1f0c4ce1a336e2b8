#ifndef ELASTOR_TRAINER_EXPERIMENT_OVERRIDES_H_
#define ELASTOR_TRAINER_EXPERIMENT_OVERRIDES_H_

#include <span>
#include <string>
#include <string_view>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// Sets one field from "path.to.field=value", the value as SetField reads it.
//   model.kind=NAME   chooses a model (ChooseModel)
//   model.FIELD...    is a field of the model that is chosen, the first of the oneof when none is
// User error in one line naming the path, what is possible and what was found; the experiment is
// then unchanged.
Status ApplyOverride(std::string_view assignment, Experiment* experiment);

// Applies assignments in order, except that the choice of a model comes first, because fields
// belong to the chosen model.
Status ApplyOverrides(std::span<const std::string> assignments, Experiment* experiment);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_OVERRIDES_H_
