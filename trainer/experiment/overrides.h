#ifndef ELASTOR_TRAINER_EXPERIMENT_OVERRIDES_H_
#define ELASTOR_TRAINER_EXPERIMENT_OVERRIDES_H_

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace elastor {

// Sets one field of `message` from "path.to.field=value":
//   numbers and strings as they are; true/false (or 1/0); an enum by the name of its value, in any
//   case; a repeated field by a comma list that replaces it (empty: clears it).
// User error in one line naming the path, the values expected and the one found; the message is
// then unchanged.
Status ApplyOverride(std::string_view assignment, google::protobuf::Message* message);

// "data, model, embedding": the fields of a message, for error lines.
std::string FieldNames(const google::protobuf::Descriptor& descriptor);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_OVERRIDES_H_
