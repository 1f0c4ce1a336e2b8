#ifndef ELASTOR_CORE_BASE_JSON_ENTRY_H_
#define ELASTOR_CORE_BASE_JSON_ENTRY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace elastor {

using Json = nlohmann::ordered_json;

// A value of a JSON text and its place there, read by type and range. What is not as expected is
// thrown as a std::string in our words, for who reads the file to put its name before:
// "categorical[3].ids: found null; expected an integer from 1 to 281474976710656".
class JsonEntry {
 public:
  // The whole of a text; `json` outlives the entries.
  explicit JsonEntry(const Json& json) : JsonEntry(json, "") {}

  const Json& json() const { return json_; }
  bool Has(const std::string& member) const;
  JsonEntry Member(const std::string& name) const;
  std::vector<JsonEntry> Elements() const;                         // of an array
  std::vector<std::pair<std::string, JsonEntry>> Members() const;  // of an object, as they stand

  std::string Text() const;
  bool Bool() const;
  int64_t Integer(int64_t least, int64_t most) const;
  double Number() const;  // finite
  uint64_t Hash() const;  // 16 hex digits
  std::string HashText() const;
  [[noreturn]] void Wrong(const std::string& expected) const;

 private:
  JsonEntry(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  const Json& json_;
  const std::string place_;
};

// A text's value. Throws a std::string when it is not JSON.
Json ParseJson(std::string_view text);
// Whether brackets of a text lie in each other deeper than in any file of ours. What is made of
// such a text must not be copied or printed: that calls itself for every level, until the stack is
// full.
bool NestsTooDeep(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_JSON_ENTRY_H_
