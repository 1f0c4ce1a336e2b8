#include "core/base/hash_text.h"

#include <xxhash.h>

#include <memory>
#include <utility>

#include "core/base/file.h"

namespace elastor {
namespace {

constexpr size_t kDigits = 16;
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

std::string HashTextOf(std::string_view bytes) {
  return HashText(XXH3_64bits(bytes.data(), bytes.size()));
}

bool IsHashText(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

uint64_t ParseHashText(std::string_view text) {
  return std::stoull(std::string(text), nullptr, 16);
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

std::string SealOf(std::string_view text) {
  return std::string(text.substr(text.size() - kSealEnd.size() - kDigits, kDigits));
}

StatusOr<FileFacts> ReadFileFacts(const std::string& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  FileFacts facts;
  ELASTOR_RETURN_IF_ERROR(ReadFileInPieces(path, kPieceBytes, [&](std::string_view piece) {
    XXH3_64bits_update(hash.get(), piece.data(), piece.size());
    facts.bytes += static_cast<int64_t>(piece.size());
  }));
  facts.xxh3 = HashText(XXH3_64bits_digest(hash.get()));
  return facts;
}

}  // namespace elastor
