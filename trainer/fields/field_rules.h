#ifndef ELASTOR_TRAINER_FIELDS_FIELD_RULES_H_
#define ELASTOR_TRAINER_FIELDS_FIELD_RULES_H_

#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace elastor {

// Checks every field of `message`, and of the messages in it, against its rule in the .proto
// (FieldRule), except optional fields that are left out. `prefix` ("parallel.") stands before the
// fields' names. User error in one line that names the field, what was found and what is expected.
Status CheckFields(const std::string& prefix, const google::protobuf::Message& message);

// Says which numbers a rule's bounds allow: "a positive number", "a number in [0, 1)".
std::string RangeWords(const FieldRule& rule);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_FIELDS_FIELD_RULES_H_
