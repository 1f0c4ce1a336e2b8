#ifndef ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_
#define ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_

#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace elastor {

// Every field of a resolved experiment: its rule in experiment.proto, and what the fields must be
// to each other. User error in one line naming the field, what was found and what is expected.
Status ValidateExperiment(const Experiment& experiment);

// The rules alone, of a part: `prefix` ("parallel.") stands before its fields' names.
Status CheckFields(const std::string& prefix, const google::protobuf::Message& message);

// Whether a job of `ranks` ranks can run it: every rank needs a leaf.
Status ValidateRanks(const Experiment& experiment, int ranks);

// What a rule's bounds let a number be: "a positive number", "a number in [0, 1)".
std::string RangeWords(const FieldRule& rule);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_CONFIG_CHECKS_H_
