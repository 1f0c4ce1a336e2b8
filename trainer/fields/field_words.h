#ifndef ELASTOR_TRAINER_FIELDS_FIELD_WORDS_H_
#define ELASTOR_TRAINER_FIELDS_FIELD_WORDS_H_

#include <sstream>
#include <string>

#include "google/protobuf/descriptor.h"

namespace elastor {

// Describes the fields of the texts that people write (configs/proto), for
// docs/reference/experiment.md and --help=TOPIC. REQUIRES: fields come from CommentedDescriptors,
// which keep the comments.

// Stands for the default of a field that has no default.
inline constexpr char kNoDefault[] = "must be given";

std::string TypeWords(const google::protobuf::FieldDescriptor& field);     // "list of integers"
std::string DefaultWords(const google::protobuf::FieldDescriptor& field);  // "0.001", "empty"
// Returns whether the field's default is a value, rather than a description of one.
bool DefaultIsValue(const google::protobuf::FieldDescriptor& field);
std::string FieldRange(const google::protobuf::FieldDescriptor& field);  // empty: any

// Returns the comment of a message, field or enum value as one line; empty if it has none.
template <typename D>
std::string CommentOf(const D& descriptor) {
  google::protobuf::SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) return "";
  std::istringstream words(location.leading_comments + location.trailing_comments);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_FIELDS_FIELD_WORDS_H_
