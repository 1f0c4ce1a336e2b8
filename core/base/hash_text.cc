#include "core/base/hash_text.h"

#include <xxhash.h>

#include <utility>

namespace elastor {
namespace {

constexpr size_t kDigits = 16;
constexpr std::string_view kSealEnd = "\"\n}\n";

}  // namespace

std::string HashTextOf(std::string_view bytes) {
  return HashText(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string SealJson(std::string text) {
  const std::string hash = HashTextOf(text);
  return std::move(text) + hash + std::string(kSealEnd);
}

bool IsSealed(std::string_view text) {
  if (text.size() < kSealEnd.size() + kDigits || !text.ends_with(kSealEnd)) return false;
  text.remove_suffix(kSealEnd.size());
  const std::string_view digits = text.substr(text.size() - kDigits);
  text.remove_suffix(kDigits);
  return digits == HashTextOf(text);
}

}  // namespace elastor
