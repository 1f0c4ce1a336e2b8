#ifndef ELASTOR_CORE_BASE_JSON_ENTRY_H_
#define ELASTOR_CORE_BASE_JSON_ENTRY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"

namespace elastor {

// A value of a JSON text and its place there, read by type and range. A value that is not as
// expected is thrown as a std::string, to which the reader of the file prepends the file's name:
// "categorical[3].ids: found null; expected an integer from 1 to 281474976710656".
class JsonEntry {
 public:
  // The entry of a whole text; `json` outlives the entries.
  explicit JsonEntry(const Json& json) : JsonEntry(json, "") {}

  const Json& json() const { return json_; }
  bool Has(const std::string& member) const;
  JsonEntry Member(const std::string& name) const;
  std::vector<JsonEntry> Elements() const;                         // elements of an array
  std::vector<std::pair<std::string, JsonEntry>> Members() const;  // members of an object, in order

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

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_JSON_ENTRY_H_
