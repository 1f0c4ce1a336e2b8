#ifndef ELASTOR_CORE_BASE_JSON_H_
#define ELASTOR_CORE_BASE_JSON_H_

#include <concepts>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace elastor {

// What Json throws where a value is not as the caller says.
class JsonError : public std::exception {
 public:
  const char* what() const noexcept override { return "a JSON value of another type, or none"; }
};

// A JSON value: null, a bool, a number, a text, an array, or an object whose members keep their
// order. The names are those of the library behind it, which json.cc alone includes: its header
// takes longer to compile than most of our files.
class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  template <std::same_as<bool> T>
  Json(T value) {
    SetBool(value);
  }
  template <std::integral T>
  requires(!std::same_as<T, bool> && sizeof(T) > 1) Json(T value) {
    if constexpr (std::signed_integral<T>) {
      SetSigned(value);
    } else {
      SetUnsigned(value);
    }
  }
  template <std::floating_point T>
  Json(T value) {
    SetNumber(static_cast<double>(value));
  }
  template <typename T>
  requires std::convertible_to<const T&, std::string_view> Json(const T& text) { SetText(text); }
  template <typename T>
  Json(const std::vector<T>& elements) {
    SetArray();
    for (const T& element : elements) push_back(element);
  }
  // An object if every element is an array of a text and a value, else an array.
  Json(std::initializer_list<Json> elements);
  Json(const Json& other);
  Json(Json&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Json& operator=(Json other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Json();

  static Json array() { return array({}); }
  static Json array(std::initializer_list<Json> elements);
  static Json object();
  // Null where the text is no JSON, or its brackets lie in each other more than 100 deep.
  static Json parse(std::string_view text);

  bool is_null() const { return value_ == nullptr; }
  bool is_boolean() const;
  bool is_number() const;
  bool is_number_integer() const;   // also an unsigned one
  bool is_number_unsigned() const;  // was read without a sign, or made of an unsigned type
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  // T: bool, int, int64_t, uint64_t, double, std::string, std::string_view (which lives as long as
  // the value). A number becomes another type as by a cast; anything else throws JsonError.
  template <typename T>
  T get() const;
  // Numbers are equal by value, whatever their types; objects in any order of their members.
  bool operator==(const Json& other) const;

  // Elements of an array, members of an object; 0 of null, 1 of anything else.
  size_t size() const;
  bool empty() const { return size() == 0; }

  // Objects. Null becomes an object where a member is added.
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const Json* find(std::string_view name) const;  // null: no such member, or no object
  const Json& at(std::string_view name) const;    // throws JsonError: no such member
  const Json& operator[](std::string_view name) const { return at(name); }
  Json& operator[](std::string_view name);
  Json value(std::string_view name, Json otherwise) const;
  void erase(std::string_view name);
  void update(const Json& members);          // sets them all
  const std::vector<Member>& items() const;  // throws JsonError: no object
  // The same with the members of every object in the order of their names.
  Json Sorted() const;

  // Arrays. Null becomes an array where an element is added.
  template <std::integral T>
  const Json& operator[](T index) const {
    return Element(static_cast<size_t>(index));
  }
  template <std::integral T>
  Json& operator[](T index) {
    return const_cast<Json&>(Element(static_cast<size_t>(index)));
  }
  const Json& back() const { return Element(size() - 1); }
  void push_back(Json element) { emplace_back() = std::move(element); }
  Json& emplace_back();
  // The elements; none where it is no array.
  const Json* begin() const;
  const Json* end() const;
  Json* begin() { return const_cast<Json*>(std::as_const(*this).begin()); }
  Json* end() { return const_cast<Json*>(std::as_const(*this).end()); }

  // The text, on one line, or with so many spaces a level and a line for each value. Bytes that are
  // not UTF-8 become U+FFFD, numbers that are not finite null. Characters that steer a terminal or
  // the direction of writing are escaped.
  std::string dump(int indent = -1) const;
  // The same on one line, with escapes in the place of characters beyond ASCII.
  std::string AsciiText() const;

 private:
  struct Value;

  void SetBool(bool value);
  void SetSigned(int64_t value);
  void SetUnsigned(uint64_t value);
  void SetNumber(double value);
  void SetText(std::string_view text);
  void SetArray();
  const Json& Element(size_t index) const;  // throws JsonError: no such element

  friend struct JsonConversion;

  Value* value_ = nullptr;  // owned; none: null
};

template <>
bool Json::get() const;
template <>
int Json::get() const;
template <>
int64_t Json::get() const;
template <>
uint64_t Json::get() const;
template <>
double Json::get() const;
template <>
std::string Json::get() const;
template <>
std::string_view Json::get() const;

// Returns a text's value. Throws a std::string if the text is no JSON or nests too deep.
Json ParseJson(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_JSON_H_
