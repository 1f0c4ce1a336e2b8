#include "trainer/fields/field_words.h"

#include "configs/proto/experiment.pb.h"
#include "trainer/fields/field_rules.h"

namespace elastor {

using google::protobuf::FieldDescriptor;

std::string TypeWords(const FieldDescriptor& field) {
  const std::string list = field.is_repeated() ? "list of " : "";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return list + (field.is_repeated() ? "integers" : "integer");
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return list + (field.is_repeated() ? "numbers" : "number");
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "name";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return list + (field.is_repeated() ? "groups" : "group");
    default:
      return list + (field.is_repeated() ? "texts" : "text");
  }
}

bool DefaultIsValue(const FieldDescriptor& field) {
  const FieldRule& rule = field.options().GetExtension(elastor::rule);
  if (!rule.default_().empty()) return true;
  if (!rule.default_words().empty() || (!field.has_presence() && rule.has_above())) return false;
  return !field.is_repeated() && field.cpp_type() != FieldDescriptor::CPPTYPE_STRING;
}

std::string DefaultWords(const FieldDescriptor& field) {
  const FieldRule& rule = field.options().GetExtension(elastor::rule);
  if (!rule.default_().empty()) return rule.default_();
  if (!rule.default_words().empty()) return rule.default_words();
  if (!field.has_presence() && rule.has_above()) return kNoDefault;
  if (!DefaultIsValue(field)) return "empty";
  if (field.enum_type() != nullptr) return field.default_value_enum()->name();
  return field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL ? "false" : "0";
}

std::string FieldRange(const FieldDescriptor& field) {
  const FieldRule& rule = field.options().GetExtension(elastor::rule);
  const bool bounded = rule.has_min() || rule.has_above() || rule.has_below();
  return (bounded ? RangeWords(rule) : "") + (rule.power_of_two() ? ", a power of two" : "");
}

}  // namespace elastor
