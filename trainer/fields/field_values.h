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

// Stores a number or a text as it is, true or false (or 1, 0), an enum by the name of its value in
// any case; in a repeated field a comma list, which replaces what was there (empty: clears it).
// User error "expected a number, found '0.9x'"; the field is then undefined.
Status SetField(const google::protobuf::FieldDescriptor& field, const std::string& text,
                google::protobuf::Message* message);

// But for deprecated ones.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& descriptor);
std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& descriptor);

std::string UpperCase(std::string_view text);  // ASCII
// "data, model, embedding"
std::string JoinNames(const std::vector<std::string>& names);
// "; did you mean 'data'?" when `found` is nearly one of the names, else "".
std::string DidYouMean(const std::vector<std::string>& names, std::string_view found);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_FIELDS_FIELD_VALUES_H_
