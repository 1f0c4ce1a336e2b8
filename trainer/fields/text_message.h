#ifndef ELASTOR_TRAINER_FIELDS_TEXT_MESSAGE_H_
#define ELASTOR_TRAINER_FIELDS_TEXT_MESSAGE_H_

#include <string>

#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace elastor {

// Fills *message from protobuf text; `source` names the text in errors. User error
// "source:line:column: ...", with the names that are possible when a field or a value of an enum
// has one that is not, when an enum is given as a number that it does not have, and when a string
// is not UTF-8.
Status ParseTextMessage(const std::string& text, const std::string& source,
                        google::protobuf::Message* message);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_FIELDS_TEXT_MESSAGE_H_
