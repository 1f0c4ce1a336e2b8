#ifndef ELASTOR_CORE_CUDA_EXACT_SUM_WORDS_H_
#define ELASTOR_CORE_CUDA_EXACT_SUM_WORDS_H_

#include <bit>
#include <cstdint>

#include "core/base/build_config.h"
#include "core/cuda/exact_sum.h"

// How host and kernels read and write the words of a DeviceExactSum. Word i counts units of
// 2^(32 i - 160) and has a sign of its own, because carries are not passed on as addends come; the
// last word counts addends that ExactSum refuses.

namespace elastor::cuda {

inline constexpr int kExactSumDigits = kExactSumWords - 1;  // words of the number itself
inline constexpr int kBadAddends = kExactSumWords - 1;      // index of the last word
inline constexpr int kExactSumFractionBits = 160;

// An addend, truncated to the least bit as ExactSum::Add does and cut into pieces of 32 bits that
// are added to three neighbouring words.
struct ExactAddend {
  int first_word = 0;
  int64_t pieces[3] = {0, 0, 0};  // pieces, with the addend's sign
  bool bad = false;               // not finite, or 2^96 and more
};

ELASTOR_HOST_DEVICE inline ExactAddend SplitForExactSum(double value) {
  ExactAddend addend;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) & 0x7ff;
  if (exponent >= 1023 + 96) {
    addend.bad = true;
    return addend;
  }
  // |value| = mantissa * 2^(bit - 160). Zeros and denormals lie far below the least bit.
  uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  int bit = exponent - 1023 - 52 + kExactSumFractionBits;
  if (bit < 0) {
    if (bit < -52) return addend;
    mantissa >>= -bit;
    bit = 0;
  }
  addend.first_word = bit >> 5;
  const int shift = bit & 31;
  const int64_t sign = (bits >> 63) != 0 ? -1 : 1;
  const uint64_t low = mantissa << shift;
  const uint64_t high = shift > 0 ? mantissa >> (64 - shift) : 0;
  addend.pieces[0] = sign * static_cast<int64_t>(low & 0xffffffffu);
  addend.pieces[1] = sign * static_cast<int64_t>(low >> 32);
  addend.pieces[2] = sign * static_cast<int64_t>(high);
  return addend;
}

// Adds to words that no other thread writes meanwhile.
ELASTOR_HOST_DEVICE inline void AddToExactWords(int64_t* words, double value) {
  const ExactAddend addend = SplitForExactSum(value);
  if (addend.bad) ++words[kBadAddends];
  for (int i = 0; i < 3; ++i) {
    if (addend.pieces[i] != 0) words[addend.first_word + i] += addend.pieces[i];
  }
}

// Passes the carries on, so that the digits are the number as two's complement of 320 bits, the
// lowest digit first.
ELASTOR_HOST_DEVICE inline void NormalizeExactWords(const int64_t* words, uint32_t* digits) {
  int64_t carry = 0;
  for (int i = 0; i < kExactSumDigits; ++i) {
    const int64_t word = words[i] + carry;
    digits[i] = static_cast<uint32_t>(static_cast<uint64_t>(word));
    carry = word >> 32;
  }
}

// Returns what ExactSum::Value() does: the nearest double, ties to even; NaN when there was a bad
// addend.
ELASTOR_HOST_DEVICE inline double ExactSumValue(const int64_t* words) {
  if (words[kBadAddends] != 0) return std::bit_cast<double>(uint64_t{0x7ff8} << 48);
  uint32_t digits[kExactSumDigits];
  NormalizeExactWords(words, digits);
  const bool negative = (digits[kExactSumDigits - 1] >> 31) != 0;
  if (negative) {
    uint64_t carry = 1;
    for (int i = 0; i < kExactSumDigits; ++i) {
      carry += static_cast<uint32_t>(~digits[i]);
      digits[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  int top = kExactSumDigits - 1;
  while (top > 0 && digits[top] == 0) --top;
  if (digits[top] == 0) return 0;
  // The leading 64 bits of the magnitude with everything below as a sticky last bit: two bits more
  // than a double keeps, so the conversion rounds as if it saw them all.
  int shift = 0;
  while ((digits[top] << shift) >> 31 == 0) ++shift;
  const uint64_t second = top > 0 ? digits[top - 1] : 0;
  const uint64_t third = top > 1 ? digits[top - 2] : 0;
  uint64_t leading = (static_cast<uint64_t>(digits[top]) << 32 | second) << shift;
  leading |= (third << shift) >> 32;
  bool sticky = static_cast<uint32_t>(third << shift) != 0;
  for (int i = 0; i < top - 2; ++i) sticky = sticky || digits[i] != 0;
  if (sticky) leading |= 1;
  const int64_t exponent = 32 * (top - 1) - shift - kExactSumFractionBits;
  const double scale = std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
  const double magnitude = static_cast<double>(leading) * scale;
  return negative ? -magnitude : magnitude;
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EXACT_SUM_WORDS_H_
