#include "core/base/json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace elastor {

using Library = nlohmann::ordered_json;

struct Json::Value {
  std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<Json>, std::vector<Member>>
      is;
};

// To the library's values, and what this file knows of a Json.
struct JsonConversion {
  static Library To(const Json& json) {
    if (const auto* elements = As<std::vector<Json>>(json)) {
      Library array = Library::array();
      for (const Json& element : *elements) array.push_back(To(element));
      return array;
    }
    if (const auto* members = As<std::vector<Json::Member>>(json)) {
      Library object = Library::object();
      // Past its search for a member of the same name.
      Library::object_t::Container& entries = object.get_ref<Library::object_t&>();
      for (const auto& [name, value] : *members) entries.emplace_back(name, To(value));
      return object;
    }
    if (const auto* text = As<std::string>(json)) return *text;
    if (const auto* value = As<bool>(json)) return *value;
    if (const auto* number = As<int64_t>(json)) return *number;
    if (const auto* number = As<uint64_t>(json)) return *number;
    if (const auto* number = As<double>(json)) return *number;
    return nullptr;
  }

  // The value as a type of Value, or null.
  template <typename T>
  static const T* As(const Json& json) {
    return json.value_ == nullptr ? nullptr : std::get_if<T>(&json.value_->is);
  }
  template <typename T>
  static T* As(Json& json) {
    return const_cast<T*>(As<T>(std::as_const(json)));
  }

  template <typename T>
  static void Set(Json& json, T value) {
    json = Json();
    json.value_ = new Json::Value{std::move(value)};
  }

  // A number or a bool by a cast.
  template <typename T>
  static T Cast(const Json& json) {
    if (const auto* number = As<int64_t>(json)) return static_cast<T>(*number);
    if (const auto* number = As<uint64_t>(json)) return static_cast<T>(*number);
    if (const auto* number = As<double>(json)) return static_cast<T>(*number);
    if (const auto* value = As<bool>(json)) return static_cast<T>(*value);
    throw JsonError();
  }

  static bool EqualNumbers(const Json& a, const Json& b) {
    if (As<double>(a) != nullptr || As<double>(b) != nullptr) {
      return Cast<double>(a) == Cast<double>(b);
    }
    const bool same_bits = Cast<uint64_t>(a) == Cast<uint64_t>(b);
    return same_bits && (a.is_number_unsigned() == b.is_number_unsigned() || Cast<int64_t>(a) >= 0);
  }
};

namespace {

using Elements = std::vector<Json>;
using Members = std::vector<Json::Member>;

template <typename T>
const T* As(const Json& json) {
  return JsonConversion::As<T>(json);
}

// Builds the value of a text from what the library's parser finds (its SAX interface).
class Builder {
 public:
  explicit Builder(std::string_view text) {
    if (!Library::sax_parse(text, this)) root_.reset();
  }
  // None: the text is no JSON, or too deep.
  std::optional<Json> TakeJson() { return std::move(root_); }
  bool too_deep() const { return open_.size() > kMostDepth; }

  bool null() {
    Place() = nullptr;
    return true;
  }
  bool boolean(bool value) { return Set(value); }
  bool number_integer(int64_t value) { return Set(value); }
  bool number_unsigned(uint64_t value) { return Set(value); }
  bool number_float(double value, const std::string&) { return Set(value); }
  bool string(std::string& value) { return Set(std::move(value)); }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return Open(Members()); }
  bool start_array(size_t) { return Open(Elements()); }
  // A name that is there already gets the new value.
  bool key(std::string& name) {
    Members& members = *JsonConversion::As<Members>(*open_.back());
    const auto found = std::ranges::find(members, name, &Json::Member::first);
    member_ = found != members.end() ? &found->second
                                     : &members.emplace_back(std::move(name), Json()).second;
    return true;
  }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  template <typename Error>
  bool parse_error(size_t, const std::string&, const Error&) {
    return false;
  }

 private:
  // Where the next value goes.
  Json& Place() {
    if (open_.empty()) return *root_;
    if (auto* elements = JsonConversion::As<Elements>(*open_.back())) {
      return elements->emplace_back();
    }
    return *member_;
  }
  template <typename T>
  bool Set(T value) {
    JsonConversion::Set(Place(), std::move(value));
    return true;
  }
  template <typename T>
  bool Open(T value) {
    Json& place = Place();
    JsonConversion::Set(place, std::move(value));
    open_.push_back(&place);
    return !too_deep();
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  // Deeper than in any file of this project. Functions of a value recurse once a level and would
  // overflow the stack.
  static constexpr size_t kMostDepth = 100;

  std::optional<Json> root_ = Json();
  std::vector<Json*> open_;  // arrays and objects, from the outermost
  Json* member_ = nullptr;   // of the innermost object
};

bool IsMember(const Json& json) {
  const Elements* pair = As<Elements>(json);
  return pair != nullptr && pair->size() == 2 && (*pair)[0].is_string();
}

}  // namespace

Json::Json(std::initializer_list<Json> elements) {
  if (!std::all_of(elements.begin(), elements.end(), IsMember)) {
    value_ = new Value{Elements(elements)};
    return;
  }
  value_ = new Value{Members()};
  for (const Json& member : elements) (*this)[member[0].get<std::string>()] = member[1];
}

Json::Json(const Json& other)
    : value_(other.value_ == nullptr ? nullptr : new Value(*other.value_)) {}
Json::~Json() { delete value_; }

Json Json::array(std::initializer_list<Json> elements) {
  Json json;
  json.value_ = new Value{Elements(elements)};
  return json;
}

Json Json::object() {
  Json json;
  json.value_ = new Value{Members()};
  return json;
}

Json Json::parse(std::string_view text) { return Builder(text).TakeJson().value_or(nullptr); }

bool Json::is_boolean() const { return As<bool>(*this) != nullptr; }
bool Json::is_number() const { return is_number_integer() || As<double>(*this) != nullptr; }
bool Json::is_number_integer() const {
  return As<int64_t>(*this) != nullptr || is_number_unsigned();
}
bool Json::is_number_unsigned() const { return As<uint64_t>(*this) != nullptr; }
bool Json::is_string() const { return As<std::string>(*this) != nullptr; }
bool Json::is_array() const { return As<Elements>(*this) != nullptr; }
bool Json::is_object() const { return As<Members>(*this) != nullptr; }

template <>
bool Json::get() const {
  if (!is_boolean()) throw JsonError();
  return *As<bool>(*this);
}
template <>
int Json::get() const {
  return JsonConversion::Cast<int>(*this);
}
template <>
int64_t Json::get() const {
  return JsonConversion::Cast<int64_t>(*this);
}
template <>
uint64_t Json::get() const {
  return JsonConversion::Cast<uint64_t>(*this);
}
template <>
double Json::get() const {
  return JsonConversion::Cast<double>(*this);
}
template <>
std::string_view Json::get() const {
  if (!is_string()) throw JsonError();
  return *As<std::string>(*this);
}
template <>
std::string Json::get() const {
  return std::string(get<std::string_view>());
}

bool Json::operator==(const Json& other) const {
  if (is_number() && other.is_number()) return JsonConversion::EqualNumbers(*this, other);
  if (is_null() || other.is_null()) return is_null() == other.is_null();
  if (!is_object() || !other.is_object()) return value_->is == other.value_->is;
  return size() == other.size() &&
         std::all_of(items().begin(), items().end(), [&](const Member& m) {
           const Json* found = other.find(m.first);
           return found != nullptr && *found == m.second;
         });
}

size_t Json::size() const {
  if (is_array()) return As<Elements>(*this)->size();
  if (is_object()) return items().size();
  return is_null() ? 0 : 1;
}

const Json* Json::find(std::string_view name) const {
  if (!is_object()) return nullptr;
  for (const auto& [other, value] : items()) {
    if (other == name) return &value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = find(name);
  if (found == nullptr) throw JsonError();
  return *found;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) *this = object();
  if (const Json* found = find(name)) return const_cast<Json&>(*found);
  Members& members = const_cast<Members&>(items());
  return members.emplace_back(name, Json()).second;
}

Json Json::value(std::string_view name, Json otherwise) const {
  const Json* found = find(name);
  return found == nullptr ? otherwise : *found;
}

void Json::erase(std::string_view name) {
  if (!is_object()) throw JsonError();
  std::erase_if(std::get<Members>(value_->is), [&](const Member& m) { return m.first == name; });
}

void Json::update(const Json& members) {
  for (const auto& [name, value] : members.items()) (*this)[name] = value;
}

const std::vector<Json::Member>& Json::items() const {
  if (!is_object()) throw JsonError();
  return *As<Members>(*this);
}

Json Json::Sorted() const {
  Json sorted = *this;
  if (is_array()) {
    for (Json& element : sorted) element = element.Sorted();
  } else if (is_object()) {
    Members& members = std::get<Members>(sorted.value_->is);
    for (auto& [name, value] : members) value = value.Sorted();
    std::sort(members.begin(), members.end(),
              [](const Member& a, const Member& b) { return a.first < b.first; });
  }
  return sorted;
}

Json& Json::emplace_back() {
  if (is_null()) SetArray();
  if (!is_array()) throw JsonError();
  return std::get<Elements>(value_->is).emplace_back();
}

const Json& Json::Element(size_t index) const {
  if (!is_array() || index >= size()) throw JsonError();
  return (*As<Elements>(*this))[index];
}

const Json* Json::begin() const { return is_array() ? As<Elements>(*this)->data() : nullptr; }
const Json* Json::end() const { return is_array() ? begin() + size() : nullptr; }

std::string Json::dump(int indent) const {
  const std::string text = JsonConversion::To(*this).dump(indent, ' ', /*ensure_ascii=*/false,
                                                          Library::error_handler_t::replace);
  // Characters that steer a terminal or the direction of writing stand in strings alone.
  constexpr std::string_view kFirstBytes = "\xc2\xd8\xe2\x7f";
  std::string shown;
  size_t begin = 0;
  for (size_t at; (at = text.find_first_of(kFirstBytes, begin)) != std::string::npos;) {
    shown.append(text, begin, at - begin);
    begin = at + (text[at] == '\x7f' ? 1 : text[at] == '\xe2' ? 3 : 2);
    shown += text[at] == '\x7f' ? "\\u007f" : WithoutControls(text.substr(at, begin - at));
  }
  return shown.append(text, begin);
}

std::string Json::AsciiText() const {
  return JsonConversion::To(*this).dump(-1, ' ', /*ensure_ascii=*/true,
                                        Library::error_handler_t::replace);
}

void Json::SetBool(bool value) { value_ = new Value{value}; }
void Json::SetSigned(int64_t value) { value_ = new Value{value}; }
void Json::SetUnsigned(uint64_t value) { value_ = new Value{value}; }
void Json::SetNumber(double value) { value_ = new Value{value}; }
void Json::SetText(std::string_view text) { value_ = new Value{std::string(text)}; }
void Json::SetArray() { value_ = new Value{Elements()}; }

Json ParseJson(std::string_view text) {
  Builder builder(text);
  if (builder.too_deep()) {
    throw std::string("brackets lie in each other too deep; the file is damaged");
  }
  std::optional<Json> json = builder.TakeJson();
  if (!json) throw std::string("not a JSON text; the file is damaged or cut off");
  return std::move(*json);
}

}  // namespace elastor
