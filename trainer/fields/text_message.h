#ifndef ELASTOR_TRAINER_FIELDS_TEXT_MESSAGE_H_
#define ELASTOR_TRAINER_FIELDS_TEXT_MESSAGE_H_

#include <string>

#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace elastor {

// Fills *message from protobuf text, which may begin with a byte order mark; `source` names the
// text in errors. User error "source:line:column: ..." for a syntax error, for an unknown field or
// enum value (with the possible names), for an enum number that does not exist, and for a string
// that is not UTF-8.
Status ParseTextMessage(const std::string& text, const std::string& source,
                        google::protobuf::Message* message);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_FIELDS_TEXT_MESSAGE_H_
