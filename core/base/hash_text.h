#ifndef ELASTOR_CORE_BASE_HASH_TEXT_H_
#define ELASTOR_CORE_BASE_HASH_TEXT_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace elastor {

// Returns an XXH3-64 hash as text: 16 lower-case hex digits. (Readers of JSON keep 53 bits of a
// number.)
inline std::string HashText(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, hash);
  return text;
}
std::string HashTextOf(std::string_view bytes);
bool IsHashText(std::string_view text);
// REQUIRES: IsHashText(text)
uint64_t ParseHashText(std::string_view text);

// Makes a JSON object that ends with its own hash. `text` ends with the opening quote of that last
// member's value; the result is `text`, the hash of `text`, and the closing quote and brace.
std::string SealJson(std::string text);
// Returns whether a text is byte for byte as SealJson made it.
bool IsSealed(std::string_view text);
// Returns the hash with which a sealed text ends. REQUIRES: IsSealed(text)
std::string SealOf(std::string_view text);

// Size and hash of a file that is read piece by piece.
struct FileFacts {
  int64_t bytes = 0;
  std::string xxh3;  // HashText
};
// Reads a file and returns its size and hash. Errors are those of ReadFile.
StatusOr<FileFacts> ReadFileFacts(const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_HASH_TEXT_H_
