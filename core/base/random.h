#ifndef ELASTOR_CORE_BASE_RANDOM_H_
#define ELASTOR_CORE_BASE_RANDOM_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace elastor {

// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011). A number is a pure function
// of a key (seed, purpose, layer) and a counter, never of rank, thread or order of use.

enum class RandomPurpose : uint32_t {
  kDenseInit = 1,
  kRowInit = 2,
  kDropout = 3,
  kDataOrder = 4,
  kSynthetic = 5,
};

// Philox key for one stream. `layer` is a stable small number or hash of a tensor's name.
uint64_t MakeRandomKey(uint64_t seed, RandomPurpose purpose, uint32_t layer);
uint32_t HashName(std::string_view name);  // low word of XXH3-64

using PhiloxBlock = std::array<uint32_t, 4>;

// The ten-round block function; matches Random123's known answers.
PhiloxBlock Philox(uint64_t key, PhiloxBlock counter);

// Two independent N(0, 1) numbers from two words by Box-Muller,
//   u = (a + 1) / 2^32,  r = sqrt(-2 log u),  first = r cos(2 pi b / 2^32),  second = r sin(...),
// with our own log, sine and cosine, so that the bits do not depend on libm. At most 6.7 in size.
struct NormalPair {
  double first;
  double second;
};
NormalPair NormalFromBits(uint32_t a, uint32_t b);

// Uniform in [0, 1) with 32 bits.
inline double UniformFromBits(uint32_t a) { return a * 0x1p-32; }

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
