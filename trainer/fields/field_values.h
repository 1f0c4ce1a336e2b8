#ifndef ELASTOR_TRAINER_FIELDS_FIELD_VALUES_H_
#define ELASTOR_TRAINER_FIELDS_FIELD_VALUES_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace elastor {

// Values of single fields as people write them (--set, the defaults in experiment.proto), and the
// names they can choose from.

// Parses `text` and stores it in the field: a number, a text as it is, true or false (or 1, 0), or
// an enum by its value's name in upper or lower case. A repeated field takes a comma list, which
// replaces the earlier values; an empty text clears it. User error "expected a number, found
// '0.9x'"; the field is then undefined.
Status SetField(const google::protobuf::FieldDescriptor& field, const std::string& text,
                google::protobuf::Message* message);

// Return the names of fields or enum values, except deprecated ones.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& descriptor);
std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& descriptor);

std::string UpperCase(std::string_view text);  // ASCII
// Joins names: "data, model, embedding".
std::string JoinNames(const std::vector<std::string>& names);
// Returns "; did you mean 'data'?" when `found` is nearly one of the names, else "".
std::string DidYouMean(const std::vector<std::string>& names, std::string_view found);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_FIELDS_FIELD_VALUES_H_
