#include "core/base/random.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "core/base/log.h"

namespace elastor {
namespace {

uint32_t LowWord(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t HighWord(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// Pairs of normal numbers made at a time.
constexpr int kPairs = 8;

template <typename T>
void FillNormalOf(uint64_t key, uint64_t stream, double stddev, int64_t count, T* out) {
  uint32_t a[kPairs], b[kPairs];
  double first[kPairs], second[kPairs];
  for (int64_t begin = 0; begin < count; begin += 2 * kPairs) {
    for (int64_t pair = 0; pair < kPairs; pair += 2) {
      const uint64_t block = static_cast<uint64_t>(begin / 2 + pair) / 2;
      const PhiloxBlock words =
          Philox(key, {LowWord(block), HighWord(block), LowWord(stream), HighWord(stream)});
      a[pair] = words[0];
      b[pair] = words[1];
      a[pair + 1] = words[2];
      b[pair + 1] = words[3];
    }
    for (int i = 0; i < kPairs; ++i) {
      const NormalPair normal = NormalFromBits(a[i], b[i]);
      first[i] = normal.first * stddev;
      second[i] = normal.second * stddev;
    }
    const int64_t here = std::min<int64_t>(2 * kPairs, count - begin);
    for (int64_t i = 0; i < here; ++i) {
      out[begin + i] = static_cast<T>(i % 2 == 0 ? first[i / 2] : second[i / 2]);
    }
  }
}

// SplitMix64's finaliser: every bit of the result depends on every bit of x.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t MakeRandomKey(uint64_t seed, RandomPurpose purpose, uint32_t layer) {
  const PhiloxBlock words = Philox(seed, {static_cast<uint32_t>(purpose), layer, 0, 0});
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

uint32_t HashName(std::string_view name) { return LowWord(XXH3_64bits(name.data(), name.size())); }

void FillNormal(uint64_t key, uint64_t stream, double stddev, int64_t count, float* out) {
  FillNormalOf(key, stream, stddev, count, out);
}

void FillNormal(uint64_t key, uint64_t stream, double stddev, int64_t count, double* out) {
  FillNormalOf(key, stream, stddev, count, out);
}

Permutation::Permutation(uint64_t key, uint64_t stream, uint64_t size) : size_(size) {
  CHECK_GE(size, 1u);
  const int bits = std::bit_width(size - 1);
  low_bits_ = bits / 2;
  low_mask_ = (uint64_t{1} << low_bits_) - 1;
  high_mask_ = (uint64_t{1} << (bits - low_bits_)) - 1;
  for (int round = 0; round < kRounds; round += 2) {
    const PhiloxBlock words =
        Philox(key, {static_cast<uint32_t>(round), 0, LowWord(stream), HighWord(stream)});
    round_keys_[round] = words[0] | static_cast<uint64_t>(words[1]) << 32;
    round_keys_[round + 1] = words[2] | static_cast<uint64_t>(words[3]) << 32;
  }
}

uint64_t Permutation::operator()(uint64_t index) const {
  CHECK_LT(index, size_);
  // Walks the cycle of a permutation of [0, 2^bits), less than twice as large, back into [0, size).
  do {
    uint64_t low = index & low_mask_;
    uint64_t high = index >> low_bits_;
    for (int round = 0; round < kRounds; round += 2) {
      high ^= Mix(low + round_keys_[round]) & high_mask_;
      low ^= Mix(high + round_keys_[round + 1]) & low_mask_;
    }
    index = high << low_bits_ | low;
  } while (index >= size_);
  return index;
}

}  // namespace elastor
