#include "core/base/json_entry.h"

#include <cmath>
#include <limits>

#include "core/base/hash_text.h"
#include "core/base/json.h"

namespace elastor {
namespace {

constexpr size_t kMostShown = 60;  // bytes of a value in a message

std::string Shown(const Json& json) {
  const std::string text = json.AsciiText();
  return text.size() <= kMostShown ? text : text.substr(0, kMostShown) + "...";
}

}  // namespace

void JsonEntry::Wrong(const std::string& expected) const {
  throw(place_.empty() ? "" : place_ + ": ") + "found " + Shown(json_) + "; expected " + expected;
}

bool JsonEntry::Has(const std::string& member) const {
  return json_.is_object() && json_.contains(member);
}

JsonEntry JsonEntry::Member(const std::string& name) const {
  if (!json_.is_object()) Wrong("an object");
  const std::string place = place_.empty() ? name : place_ + "." + name;
  if (!json_.contains(name)) throw place + ": missing";
  return JsonEntry(json_.at(name), place);
}

std::vector<JsonEntry> JsonEntry::Elements() const {
  if (!json_.is_array()) Wrong("an array");
  std::vector<JsonEntry> elements;
  for (const Json& element : json_) {
    elements.push_back(JsonEntry(element, place_ + "[" + std::to_string(elements.size()) + "]"));
  }
  return elements;
}

std::vector<std::pair<std::string, JsonEntry>> JsonEntry::Members() const {
  if (!json_.is_object()) Wrong("an object");
  std::vector<std::pair<std::string, JsonEntry>> members;
  for (const auto& [name, value] : json_.items()) {
    members.emplace_back(name, JsonEntry(value, place_.empty() ? name : place_ + "." + name));
  }
  return members;
}

std::string JsonEntry::Text() const {
  if (!json_.is_string()) Wrong("a text");
  return json_.get<std::string>();
}

bool JsonEntry::Bool() const {
  if (!json_.is_boolean()) Wrong("true or false");
  return json_.get<bool>();
}

int64_t JsonEntry::Integer(int64_t least, int64_t most) const {
  const bool fits = json_.is_number_integer() &&
                    (!json_.is_number_unsigned() ||
                     json_.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
  const int64_t value = fits ? json_.get<int64_t>() : 0;
  if (!fits || value < least || value > most) {
    Wrong("an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

double JsonEntry::Number() const {
  if (!json_.is_number() || !std::isfinite(json_.get<double>())) Wrong("a finite number");
  return json_.get<double>();
}

std::string JsonEntry::HashText() const {
  if (!json_.is_string() || !IsHashText(json_.get<std::string>())) Wrong("16 hex digits");
  return json_.get<std::string>();
}

uint64_t JsonEntry::Hash() const { return ParseHashText(HashText()); }

}  // namespace elastor
