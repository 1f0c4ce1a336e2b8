#include "embedding/wire_format.h"

#include <algorithm>
#include <bit>

#include "core/base/log.h"

namespace elastor {
namespace {

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kLeastNormal = 0x00800000;
constexpr int kBias = 127;

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }
float Number(uint32_t bits) { return std::bit_cast<float>(bits); }

// ---- BFLOAT16

uint16_t ToBFloat16(float value) {
  const uint32_t bits = Bits(value);
  const uint32_t magnitude = bits & ~kSign;
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t finite = magnitude < kLeastNormal ? 0 : rounded;
  return static_cast<uint16_t>(magnitude > kInfinity ? 0x7fc0 : finite);
}
float FromBFloat16(uint16_t word) { return Number(static_cast<uint32_t>(word) << 16); }

// ---- FLOAT16

// Returns e.
int ExponentOf(const float* vector, int64_t width) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < width; ++i) largest = std::max(largest, Bits(vector[i]) & ~kSign);
  if (largest < kLeastNormal || largest >= kInfinity) return 0;
  const uint32_t rounded = largest + 0xfff + (largest >> 13 & 1);
  return static_cast<int>(rounded >> 23) - kBias;
}

// Returns x * 2^exponent for a normal x that stays finite or becomes infinite; +0 for what becomes
// less than normal.
uint32_t ScaledMagnitude(uint32_t magnitude, int exponent) {
  const int field = static_cast<int>(magnitude >> 23) + exponent;
  const uint32_t scaled = field >= 255 ? kInfinity : magnitude + (exponent << 23);
  return magnitude < kLeastNormal || field < 1 ? 0 : scaled;
}

uint16_t ToFloat16(float value, int exponent) {
  // Below 2^-14 a half has the bits below the point of a number from .5 to 1, in units of 2^-24.
  constexpr uint32_t kHalf = 0x3f000000;
  constexpr uint32_t kLeastNormalHalf = (kBias - 14) << 23;
  constexpr uint32_t kTooLarge = 0x477ff000;  // 65,520
  const uint32_t sign = Bits(value) & kSign;
  const uint32_t magnitude = Bits(value) & ~kSign;
  const uint32_t scaled = ScaledMagnitude(magnitude, -exponent);
  const uint32_t normal = ((scaled + 0xfff + (scaled >> 13 & 1)) >> 13) - ((kBias - 15) << 10);
  const uint32_t small = Bits(Number(std::min(scaled, kLeastNormalHalf)) + 0.5f) - kHalf;
  uint32_t half = scaled < kLeastNormalHalf ? small : normal;
  half = scaled >= kTooLarge ? 0x7c00 : half;
  half |= half == 0 ? 0 : sign >> 16;
  return static_cast<uint16_t>(magnitude > kInfinity ? 0x7e00 : half);
}

float FromFloat16(uint16_t word, int exponent) {
  const uint32_t sign = static_cast<uint32_t>(word & 0x8000) << 16;
  const uint32_t half = word & 0x7fff;
  const uint32_t normal = (half << 13) + ((kBias - 15) << 23);
  const uint32_t small = Bits(Number(0x3f000000 + half) - 0.5f);
  const uint32_t finite = ScaledMagnitude(half < 0x400 ? small : normal, exponent);
  const uint32_t special = half > 0x7c00 ? 0x7fc00000 : kInfinity;
  const uint32_t magnitude = half >= 0x7c00 ? special : finite;
  return Number(magnitude | (magnitude == 0 || half > 0x7c00 ? 0 : sign));
}

}  // namespace

template <>
void WriteWire(WireFormat format, const float* vector, int64_t width, uint16_t* words) {
  if (format == WireFormat::kBFloat16) {
    for (int64_t i = 0; i < width; ++i) words[i] = ToBFloat16(vector[i]);
    return;
  }
  const int exponent = ExponentOf(vector, width);
  for (int64_t i = 0; i < width; ++i) words[i] = ToFloat16(vector[i], exponent);
  words[width] = static_cast<uint16_t>(exponent);
}

template <>
void ReadWire(WireFormat format, const uint16_t* words, int64_t width, float* vector) {
  if (format == WireFormat::kBFloat16) {
    for (int64_t i = 0; i < width; ++i) vector[i] = FromBFloat16(words[i]);
    return;
  }
  const int exponent = static_cast<int16_t>(words[width]);
  for (int64_t i = 0; i < width; ++i) vector[i] = FromFloat16(words[i], exponent);
}

template <>
void WriteAndReadWire(WireFormat format, int64_t width, float* vector) {
  if (format == WireFormat::kBFloat16) {
    for (int64_t i = 0; i < width; ++i) vector[i] = FromBFloat16(ToBFloat16(vector[i]));
    return;
  }
  const int exponent = ExponentOf(vector, width);
  for (int64_t i = 0; i < width; ++i) {
    vector[i] = FromFloat16(ToFloat16(vector[i], exponent), exponent);
  }
}

template <>
void WriteWire(WireFormat, const double*, int64_t, uint16_t*) {
  LOG(FATAL) << "only float travels in 16 bits";
}
template <>
void ReadWire(WireFormat, const uint16_t*, int64_t, double*) {
  LOG(FATAL) << "only float travels in 16 bits";
}
template <>
void WriteAndReadWire(WireFormat, int64_t, double*) {
  LOG(FATAL) << "only float travels in 16 bits";
}

}  // namespace elastor
