#ifndef ELASTOR_CORE_BASE_RANDOM_H_
#define ELASTOR_CORE_BASE_RANDOM_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/base/build_config.h"
#include "core/base/canonical_math.h"

namespace elastor {

// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011). A number is a pure function
// of a key (seed, purpose, layer) and a counter, never of rank, thread or order of use.

enum class RandomPurpose : uint32_t {
  kDenseInit = 1,
  kRowInit = 2,
  kDropout = 3,
  kDataOrder = 4,
  kSynthetic = 5,
  kTheory = 6,
  kAttentionDropout = 7,
  kNegatives = 8,
};

// Returns the Philox key for one stream. `layer` is a stable small number or hash of a tensor's
// name.
uint64_t MakeRandomKey(uint64_t seed, RandomPurpose purpose, uint32_t layer);
uint32_t HashName(std::string_view name);  // low word of XXH3-64

using PhiloxBlock = std::array<uint32_t, 4>;

// The ten-round block function; matches Random123's known answers.
ELASTOR_HOST_DEVICE inline PhiloxBlock Philox(uint64_t key, PhiloxBlock counter) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;  // golden ratio
    k1 += 0xBB67AE85;  // sqrt(3) - 1
  }
  return counter;
}

// Two independent N(0, 1) numbers from two words by Box-Muller,
//   u = (a + 1) / 2^32,  r = sqrt(-2 log u),  first = r cos(2 pi b / 2^32),  second = r sin(...),
// with our own log, sine and cosine, so that the bits do not depend on libm. At most 6.7 in size.
struct NormalPair {
  double first;
  double second;
};
// Inlined by force: only then a loop over pairs becomes vector code.
[[gnu::always_inline]] ELASTOR_HOST_DEVICE inline NormalPair NormalFromBits(uint32_t a,
                                                                            uint32_t b) {
  // Converts a to double through a signed number, since vectors have that conversion. It is exact.
  const double signed_a = static_cast<int32_t>(a ^ 0x80000000u);
  const double u = (signed_a + (0x1p31 + 1)) * 0x1p-32;
  const double radius = std::sqrt(-2 * CanonicalLog(u));
  const SinCos angle = CanonicalSinCos(b);
  return {radius * angle.cos, radius * angle.sin};
}

// Returns a number uniform in [0, 1) with 32 bits.
ELASTOR_HOST_DEVICE inline double UniformFromBits(uint32_t a) { return a * 0x1p-32; }

// Fills out[0, count) with mean-0 normal numbers: element i is number i % 4 of the four normals of
// Philox(key, {i / 4 low, i / 4 high, stream_low, stream_high}), times stddev.
void FillNormal(uint64_t key, uint64_t stream, double stddev, int64_t count, float* out);
void FillNormal(uint64_t key, uint64_t stream, double stddev, int64_t count, double* out);

// An invertible permutation of [0, size) by a keyed Feistel network with cycle walking: no state,
// O(1) to evaluate anywhere (about 30 ns). Immutable.
class Permutation {
 public:
  // REQUIRES: size >= 1.
  Permutation(uint64_t key, uint64_t stream, uint64_t size);
  // REQUIRES: index < size.
  uint64_t operator()(uint64_t index) const;

 private:
  static constexpr int kRounds = 8;
  uint64_t size_;
  int low_bits_;
  uint64_t low_mask_;
  uint64_t high_mask_;
  std::array<uint64_t, kRounds> round_keys_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_RANDOM_H_
