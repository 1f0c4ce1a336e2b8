#include "core/base/exact_sum.h"

#include <bit>
#include <limits>

namespace elastor {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr int kFractionBits = 160;  // of the fixed-point sum
constexpr int kMantissaBits = 52;   // of a double, without the leading one
constexpr int kExponentBias = 1023;
constexpr uint64_t kHiddenBit = uint64_t{1} << kMantissaBits;
constexpr int kFirstExponentOutOfRange = kExponentBias + 96;

}  // namespace

void ExactSum::Add(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>(bits >> kMantissaBits) & 0x7ff;
  if (exponent >= kFirstExponentOutOfRange) {
    ok_ = false;
    return;
  }
  // |value| = mantissa * 2^(bit - kFractionBits). Zeros and denormals lie far below the least bit.
  uint64_t mantissa = (bits & (kHiddenBit - 1)) | kHiddenBit;
  int bit = exponent - kExponentBias - kMantissaBits + kFractionBits;
  if (bit < 0) {
    if (bit < -kMantissaBits) return;
    mantissa >>= -bit;
    bit = 0;
  }
  AddAt(bit, mantissa, (bits >> 63) != 0);
}

// Adds +-magnitude * 2^bit. The shifted magnitude spans at most two limbs; a carry or borrow rarely
// goes further.
void ExactSum::AddAt(int bit, uint64_t magnitude, bool negative) {
  const int limb = bit / 64;
  const Uint128 addend = static_cast<Uint128>(magnitude) << (bit % 64);
  const bool two_limbs = limb + 1 < kLimbs;
  const Uint128 high = two_limbs ? limbs_[limb + 1] : 0;
  const Uint128 before = high << 64 | limbs_[limb];
  const Uint128 after = negative ? before - addend : before + addend;
  limbs_[limb] = static_cast<uint64_t>(after);
  if (!two_limbs) return;
  limbs_[limb + 1] = static_cast<uint64_t>(after >> 64);
  bool carry = negative ? after > before : after < before;
  for (int i = limb + 2; carry && i < kLimbs; ++i) {
    if (negative) {
      carry = limbs_[i]-- == 0;
    } else {
      carry = ++limbs_[i] == 0;
    }
  }
}

void ExactSum::Merge(const ExactSum& other) {
  Uint128 carry = 0;
  for (int i = 0; i < kLimbs; ++i) {
    carry += static_cast<Uint128>(limbs_[i]) + other.limbs_[i];
    limbs_[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  ok_ = ok_ && other.ok_;
}

double ExactSum::Value() const {
  if (!ok_) return std::numeric_limits<double>::quiet_NaN();
  const bool negative = (limbs_[kLimbs - 1] >> 63) != 0;
  ExactSum magnitude;
  if (negative) {
    uint64_t carry = 1;
    for (int i = 0; i < kLimbs; ++i) {
      magnitude.limbs_[i] = ~limbs_[i] + carry;
      carry = carry != 0 && magnitude.limbs_[i] == 0 ? 1 : 0;
    }
  } else {
    magnitude = *this;
  }
  const std::array<uint64_t, kLimbs>& limbs = magnitude.limbs_;

  int top = kLimbs - 1;
  while (top > 0 && limbs[top] == 0) --top;
  if (limbs[top] == 0) return 0;
  // The leading 64 bits of the magnitude, then everything below as one sticky bit: two bits more
  // than a double keeps, so the conversion rounds as if it saw them all.
  const int shift = std::countl_zero(limbs[top]);
  uint64_t leading = limbs[top] << shift;
  bool sticky = false;
  if (top > 0) {
    if (shift > 0) leading |= limbs[top - 1] >> (64 - shift);
    sticky = (limbs[top - 1] << shift) != 0;
    for (int i = 0; i < top - 1; ++i) sticky = sticky || limbs[i] != 0;
  }
  if (sticky) leading |= 1;
  const int64_t exponent = 64 * top - shift - kFractionBits;
  const double scale = std::bit_cast<double>((kExponentBias + exponent) << kMantissaBits);
  const double result = static_cast<double>(leading) * scale;
  return negative ? -result : result;
}

std::array<int64_t, ExactSum::kWords> ExactSum::ToWords() const {
  std::array<int64_t, kWords> words{};
  for (int i = 0; i < kWords - 1; ++i) {
    const int limb = i * kWordBits / 64;
    const Uint128 high = limb + 1 < kLimbs ? limbs_[limb + 1] : 0;
    const Uint128 pair = high << 64 | limbs_[limb];
    const uint64_t word = static_cast<uint64_t>(pair >> (i * kWordBits % 64)) << (64 - kWordBits);
    const bool is_top = i == kWords - 2;
    words[i] = is_top ? static_cast<int64_t>(word) >> (64 - kWordBits)
                      : static_cast<int64_t>(word >> (64 - kWordBits));
  }
  words[kWords - 1] = ok_ ? 0 : 1;
  return words;
}

ExactSum ExactSum::FromWords(const std::array<int64_t, kWords>& words) {
  ExactSum sum;
  for (int i = 0; i < kWords - 1; ++i) {
    const bool negative = words[i] < 0;
    const uint64_t bits = static_cast<uint64_t>(words[i]);
    sum.AddAt(i * kWordBits, negative ? -bits : bits, negative);
  }
  sum.ok_ = words[kWords - 1] == 0;
  return sum;
}

}  // namespace elastor
