#include "core/base/digest.h"

#include <xxhash.h>

#include <cstdio>

namespace elastor {

void Digest::Add(std::string_view name, uint64_t row, const void* bytes, size_t size) {
  AddHashed(NameSeed(name), row, bytes, size);
}

void Digest::AddHashed(uint64_t name_seed, uint64_t row, const void* bytes, size_t size) {
  Merge(OfRecord(name_seed, row, bytes, size));
}

Digest Digest::OfRecord(uint64_t name_seed, uint64_t row, const void* bytes, size_t size) {
  // An odd multiplier: for one name, different rows have different seeds.
  const uint64_t seed = name_seed + row * 0x9e3779b97f4a7c15;
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size, seed);
  Digest digest;
  digest.low_ = hash.low64;
  digest.high_ = hash.high64;
  return digest;
}

uint64_t Digest::NameSeed(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

void Digest::Merge(const Digest& other) {
  low_ += other.low_;
  high_ += other.high_ + (low_ < other.low_ ? 1 : 0);
}

void Digest::Subtract(const Digest& other) {
  high_ -= other.high_ + (low_ < other.low_ ? 1 : 0);
  low_ -= other.low_;
}

std::string Digest::Hex() const {
  char digits[33];
  std::snprintf(digits, sizeof(digits), "%016llx%016llx", static_cast<unsigned long long>(high_),
                static_cast<unsigned long long>(low_));
  return digits;
}

std::array<int64_t, Digest::kWords> Digest::ToWords() const {
  constexpr uint64_t kLow32 = 0xffffffff;
  return {static_cast<int64_t>(low_ & kLow32), static_cast<int64_t>(low_ >> 32),
          static_cast<int64_t>(high_ & kLow32), static_cast<int64_t>(high_ >> 32)};
}

Digest Digest::FromWords(const std::array<int64_t, kWords>& words) {
  // Each word is a sum of 32-bit words; what exceeds 32 bits carries into the next one.
  uint64_t carry = 0;
  std::array<uint64_t, kWords> parts;
  for (int i = 0; i < kWords; ++i) {
    const uint64_t total = static_cast<uint64_t>(words[i]) + carry;
    parts[i] = total & 0xffffffff;
    carry = total >> 32;
  }
  Digest digest;
  digest.low_ = parts[0] | parts[1] << 32;
  digest.high_ = parts[2] | parts[3] << 32;
  return digest;
}

}  // namespace elastor
