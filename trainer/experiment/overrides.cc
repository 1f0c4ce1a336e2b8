#include "trainer/experiment/overrides.h"

#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "glog/logging.h"
#include "google/protobuf/descriptor.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != text.npos; begin = end + 1) {
    parts.emplace_back(text.substr(begin, end - begin));
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::string UpperCase(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c += 'A' - 'a';
  }
  return text;
}

// The whole text as a number, or nothing.
template <typename T>
std::optional<T> ParseNumber(const std::string& text) {
  T value;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::optional<bool> ParseBool(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

std::string ExpectedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return "a 32-bit integer";
    case FieldDescriptor::CPPTYPE_INT64:
      return "a 64-bit integer";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::string names;
      for (int i = 0; i < field.enum_type()->value_count(); ++i) {
        names += (i == 0 ? "one of " : ", ") + field.enum_type()->value(i)->name();
      }
      return names;
    }
    default:
      return "a text";
  }
}

// Stores one value in a singular field, or appends it to a repeated one. False: not such a value.
bool StoreValue(const FieldDescriptor& field, const std::string& text, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  const auto store = [&](const auto& value, auto set, auto add) {
    if (!value.has_value()) return false;
    (reflection.*(field.is_repeated() ? add : set))(message, &field, *value);
    return true;
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return store(ParseNumber<int32_t>(text), &Reflection::SetInt32, &Reflection::AddInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return store(ParseNumber<int64_t>(text), &Reflection::SetInt64, &Reflection::AddInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return store(ParseNumber<double>(text), &Reflection::SetDouble, &Reflection::AddDouble);
    case FieldDescriptor::CPPTYPE_BOOL:
      return store(ParseBool(text), &Reflection::SetBool, &Reflection::AddBool);
    case FieldDescriptor::CPPTYPE_STRING:
      return store(std::optional<std::string>(text), &Reflection::SetString,
                   &Reflection::AddString);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value = field.enum_type()->FindValueByName(UpperCase(text));
      return store(value == nullptr ? std::nullopt : std::optional(value), &Reflection::SetEnum,
                   &Reflection::AddEnum);
    }
    default:
      return false;
  }
}

}  // namespace

std::string FieldNames(const Descriptor& descriptor) {
  std::string names;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    names += (i == 0 ? "" : ", ") + descriptor.field(i)->name();
  }
  return names;
}

Status ApplyOverride(std::string_view assignment, Message* message) {
  const std::string shown = "--set=" + std::string(assignment) + ": ";
  const size_t equals = assignment.find('=');
  if (equals == assignment.npos) return UserError(shown + "expected path.to.field=value");
  const std::vector<std::string> path = Split(assignment.substr(0, equals), '.');
  const std::string value(assignment.substr(equals + 1));

  const Descriptor* level = message->GetDescriptor();
  std::vector<const FieldDescriptor*> fields;
  for (const std::string& name : path) {
    if (level == nullptr) {
      return UserError(shown + fields.back()->name() + " has no fields of its own");
    }
    const FieldDescriptor* field = level->FindFieldByName(name);
    if (field == nullptr) {
      return UserError(shown + level->name() + " has no field '" + name +
                       "'; it has: " + FieldNames(*level));
    }
    CHECK(!field->is_repeated() || field->message_type() == nullptr)
        << field->full_name() << ": a repeated group cannot be set by a flag";
    fields.push_back(field);
    level = field->message_type();  // null for a plain value
  }
  if (fields.empty()) return UserError(shown + "expected path.to.field=value");
  if (level != nullptr) {
    return UserError(shown + fields.back()->name() +
                     " is a group of fields; set one of: " + FieldNames(*level));
  }

  const std::unique_ptr<Message> changed(message->New());
  changed->CopyFrom(*message);
  Message* parent = changed.get();
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    parent = parent->GetReflection()->MutableMessage(parent, fields[i]);
  }
  const FieldDescriptor& field = *fields.back();
  if (field.is_repeated()) parent->GetReflection()->ClearField(parent, &field);
  for (const std::string& item :
       field.is_repeated() ? Split(value, ',') : std::vector<std::string>{value}) {
    if (!StoreValue(field, item, parent)) {
      return UserError(shown + "expected " + ExpectedValue(field) + ", found '" + item + "'");
    }
  }
  message->GetReflection()->Swap(message, changed.get());
  return OkStatus();
}

}  // namespace elastor
