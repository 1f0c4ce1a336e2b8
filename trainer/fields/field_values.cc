#include "trainer/fields/field_values.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/log.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  if (text.empty()) return items;
  for (size_t comma; (comma = text.find(',')) != text.npos; text.remove_prefix(comma + 1)) {
    items.emplace_back(text.substr(0, comma));
  }
  items.emplace_back(text);
  return items;
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
      LOG(FATAL) << field.full_name() << ": no value of this type can be given as a text";
  }
}

std::string ExpectedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return "a 32-bit integer";
    case FieldDescriptor::CPPTYPE_INT64:
      return "a 64-bit integer";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "one of " + JoinNames(ValueNames(*field.enum_type()));
    default:
      return "true or false";
  }
}

// How many letters must be put in, left out, replaced or swapped with their neighbour to make one
// of the other.
int EditDistance(std::string_view a, std::string_view b) {
  // Distances to each beginning of `b`: from the letters of `a` so far, from one less and two less.
  std::vector<int> row(b.size() + 1), last, before;
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(last, row);
    ++row[0];
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] == b[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c += 'A' - 'a';
  }
  return upper;
}

Status SetField(const FieldDescriptor& field, const std::string& text, Message* message) {
  if (field.is_repeated()) message->GetReflection()->ClearField(message, &field);
  for (const std::string& item : field.is_repeated() ? SplitList(text) : std::vector{text}) {
    if (StoreValue(field, item, message)) continue;
    std::string hint;
    if (field.enum_type() != nullptr) {
      hint = DidYouMean(ValueNames(*field.enum_type()), UpperCase(item));
    }
    return UserError("expected " + ExpectedValue(field) + ", found '" + item + "'" + hint);
  }
  return OkStatus();
}

std::vector<std::string> FieldNames(const Descriptor& descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    if (!descriptor.field(i)->options().deprecated()) names.push_back(descriptor.field(i)->name());
  }
  return names;
}

std::vector<std::string> ValueNames(const EnumDescriptor& descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor.value_count(); ++i) names.push_back(descriptor.value(i)->name());
  return names;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

std::string DidYouMean(const std::vector<std::string>& names, std::string_view found) {
  // In a word of four letters two slips make any other.
  const int slips_allowed = found.size() > 4 ? 2 : 1;
  const std::string* nearest = nullptr;
  int fewest = slips_allowed + 1;
  for (const std::string& name : names) {
    const auto [shorter, longer] = std::minmax({name.size(), found.size()});
    if (longer - shorter > static_cast<size_t>(slips_allowed)) continue;
    const int slips = EditDistance(name, found);
    if (slips >= fewest || slips >= static_cast<int>(name.size())) continue;
    nearest = &name;
    fewest = slips;
  }
  return nearest == nullptr ? "" : "; did you mean '" + *nearest + "'?";
}

}  // namespace elastor
