#ifndef ELASTOR_CORE_BASE_HASH_TEXT_H_
#define ELASTOR_CORE_BASE_HASH_TEXT_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace elastor {

// XXH3-64 in texts: 16 lower-case hex digits. (Readers of JSON keep 53 bits of a number.)
inline std::string HashText(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, hash);
  return text;
}
std::string HashTextOf(std::string_view bytes);

// A JSON object that ends with its own hash. `text` ends with the opening quote of that last
// member's value; the result is `text`, the hash of `text`, and the closing quote and brace.
std::string SealJson(std::string text);
// Whether a text is as SealJson made it, to the byte.
bool IsSealed(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_HASH_TEXT_H_
