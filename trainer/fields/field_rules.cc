#include "trainer/fields/field_rules.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

template <typename T>
Status CheckNumber(const std::string& path, const FieldRule& rule, T value) {
  std::string found;
  if constexpr (std::is_integral_v<T>) {
    found = std::to_string(value);
  } else {
    found = Format("%g", value);
  }
  const double number = static_cast<double>(value);
  const bool inside = std::isfinite(number) && (!rule.has_min() || number >= rule.min()) &&
                      (!rule.has_above() || number > rule.above()) &&
                      (!rule.has_below() || number < rule.below());
  if (!inside) return UserError(path + ": " + found + "; expected " + RangeWords(rule));
  if (!rule.power_of_two() || std::has_single_bit(static_cast<uint64_t>(value))) return OkStatus();
  return UserError(path + ": " + found + " is not a power of two");
}

Status CheckText(const std::string& path, const std::string& text) {
  const Status status = CheckUtf8(text);
  return status.ok() ? status : UserError(path + ": " + status.message());
}

// Every number and every text of a field.
Status CheckField(const std::string& path, const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const FieldRule& rule = field.options().GetExtension(elastor::rule);
  const auto check_all = [&](auto check, auto get, auto get_one) -> Status {
    if (!field.is_repeated()) return check((reflection.*get)(message, &field));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      ELASTOR_RETURN_IF_ERROR(check((reflection.*get_one)(message, &field, i)));
    }
    return OkStatus();
  };
  const auto check = [&](auto get, auto get_one) {
    return check_all([&](auto value) { return CheckNumber(path, rule, value); }, get, get_one);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return check(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return check(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return check(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_STRING:
      return check_all([&](const std::string& text) { return CheckText(path, text); },
                       &Reflection::GetString, &Reflection::GetRepeatedString);
    default:
      return OkStatus();
  }
}

}  // namespace

Status CheckFields(const std::string& prefix, const Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const std::string path = prefix + field.name();
    const bool left_out =
        field.has_presence() && !message.GetReflection()->HasField(message, &field);
    if (left_out || field.options().deprecated()) continue;
    if (field.message_type() == nullptr) {
      ELASTOR_RETURN_IF_ERROR(CheckField(path, message, field));
    } else if (field.is_repeated()) {
      const Reflection& reflection = *message.GetReflection();
      for (int j = 0; j < reflection.FieldSize(message, &field); ++j) {
        ELASTOR_RETURN_IF_ERROR(CheckFields(StrCat(path, " ", j + 1, "."),
                                            reflection.GetRepeatedMessage(message, &field, j)));
      }
    } else {
      ELASTOR_RETURN_IF_ERROR(
          CheckFields(path + ".", message.GetReflection()->GetMessage(message, &field)));
    }
  }
  return OkStatus();
}

std::string RangeWords(const FieldRule& rule) {
  if (rule.has_below() && (rule.has_min() || rule.has_above())) {
    return std::string("a number in ") +
           (rule.has_min() ? "[" + Format("%g", rule.min()) : "(" + Format("%g", rule.above())) +
           ", " + Format("%g", rule.below()) + ")";
  }
  if (rule.has_above()) {
    return rule.above() == 0 ? "a positive number" : "more than " + Format("%g", rule.above());
  }
  return rule.has_min() ? Format("%g", rule.min()) + " or more" : "a finite number";
}

}  // namespace elastor
