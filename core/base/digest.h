#ifndef ELASTOR_CORE_BASE_DIGEST_H_
#define ELASTOR_CORE_BASE_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace elastor {

// The state digest: sum mod 2^128 over records of XXH3-128(name, row, bytes). Order-free, so it
// does not depend on layout, ranks or threads.
class Digest {
 public:
  // Adds a record: XXH3-128 with seed XXH3-64(name) mixed with `row`, over `size` bytes.
  void Add(std::string_view name, uint64_t row, const void* bytes, size_t size);
  // Does the same with a name hashed before by NameSeed (for many rows of one tensor).
  void AddHashed(uint64_t name_seed, uint64_t row, const void* bytes, size_t size);
  static uint64_t NameSeed(std::string_view name);
  // Returns the digest of this one record.
  static Digest OfRecord(uint64_t name_seed, uint64_t row, const void* bytes, size_t size);
  void Merge(const Digest& other);
  // Removes records whose digest is `other`. REQUIRES: this digest contains them.
  void Subtract(const Digest& other);
  std::string Hex() const;  // 32 digits

  // Words for an integer all-reduce (32 bits a word), as in ExactSum.
  static constexpr int kWords = 4;
  std::array<int64_t, kWords> ToWords() const;
  static Digest FromWords(const std::array<int64_t, kWords>& words);

  bool operator==(const Digest&) const = default;

 private:
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_DIGEST_H_
