#ifndef ELASTOR_TRAINER_FIELDS_FIELD_WORDS_H_
#define ELASTOR_TRAINER_FIELDS_FIELD_WORDS_H_

#include <sstream>
#include <string>

#include "google/protobuf/descriptor.h"

namespace elastor {

// What the texts that people write (configs/proto) say of a field, for docs/reference/experiment.md
// and
// --help=TOPIC. Fields are those of CommentedDescriptors.

// The default of a field that has none.
inline constexpr char kNoDefault[] = "must be given";

std::string TypeWords(const google::protobuf::FieldDescriptor& field);     // "list of integers"
std::string DefaultWords(const google::protobuf::FieldDescriptor& field);  // "0.001", "empty"
// Whether its default is a value, not words about one.
bool DefaultIsValue(const google::protobuf::FieldDescriptor& field);
std::string FieldRange(const google::protobuf::FieldDescriptor& field);  // empty: any

// The comment of a message, field or name as one line; empty: it has none.
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
