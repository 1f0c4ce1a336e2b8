#ifndef ELASTOR_TRAINER_CONFIG_H_
#define ELASTOR_TRAINER_CONFIG_H_

#include <span>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// An experiment ready to run: reads the file, applies the overrides ("path.to.field=value", in
// order), fills in every default and checks every field. User error in one line naming the file or
// the field, what was found and what is expected.
StatusOr<Experiment> LoadExperiment(const std::string& path,
                                    std::span<const std::string> overrides);

// The steps of LoadExperiment.
StatusOr<Experiment> ReadExperiment(const std::string& path);
// Replaces what is unset by the defaults that experiment.proto names, and drops what the model's
// kind does not use, so that the file written beside the results says all that was in force.
// Idempotent.
void ResolveDefaults(Experiment* experiment);
// REQUIRES: resolved.
Status ValidateExperiment(const Experiment& experiment);

// Whether a job of `ranks` ranks can run it: every rank needs a leaf.
Status ValidateRanks(const Experiment& experiment, int ranks);

// XXH3-64, as 16 hex digits, over the numeric fields (those without the `operational` option) of a
// resolved experiment. Equal hashes: equal results.
std::string NumericHash(const Experiment& experiment);

// As written to experiment.textproto; ReadExperiment reads it back.
std::string ExperimentText(const Experiment& experiment);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CONFIG_H_
