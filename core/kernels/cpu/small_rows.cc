#include "core/kernels/small_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/log.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
namespace {

constexpr int64_t kHeaderWords = 2;
constexpr int64_t kCodesAtOnce = 8;
constexpr double kLeastScale = 0x1p-100;
constexpr float kLeastWeight = 0x1p-100f;
constexpr float kWeightLimit = 0x1p127f;

int64_t BitsOf(RowFormat format) { return format == RowFormat::kInt8 ? 8 : 4; }

float Flushed(float weight) { return std::abs(weight) < kLeastWeight ? 0.0f : weight; }

// Eight halves of bytes, the lower half first, as eight bytes.
uint64_t Spread(uint32_t halves) {
  uint64_t bytes = halves;
  bytes = (bytes | bytes << 16) & 0x0000ffff0000ffff;
  bytes = (bytes | bytes << 8) & 0x00ff00ff00ff00ff;
  return (bytes | bytes << 4) & 0x0f0f0f0f0f0f0f0f;
}

// Makes floats of as many codes as the vectors of the build take, several times.
ELASTOR_INLINE void DecodeEight(uint64_t codes, FloatVec scale, FloatVec offset, float* row) {
  static_assert(kCodesAtOnce % kLanes<float> == 0);
  for (int64_t i = 0; i < kCodesAtOnce; i += kLanes<float>) {
    Save(row + i, Fma(FloatsOfBytes(codes >> 8 * i), scale, offset));
  }
}

}  // namespace

std::string_view RowFormatName(RowFormat format) {
  switch (format) {
    case RowFormat::kFloat32:
      return "FLOAT32";
    case RowFormat::kInt8:
      return "INT8";
    case RowFormat::kInt4:
      return "INT4";
  }
  return "";
}

int64_t RowWords(RowFormat format, int64_t width) {
  return format == RowFormat::kFloat32 ? width : kHeaderWords + (width * BitsOf(format) + 31) / 32;
}

bool EncodeRow(RowFormat format, const float* row, int64_t width, float* words) {
  CHECK(format != RowFormat::kFloat32);
  float least = kWeightLimit, largest = -kWeightLimit;
  for (int64_t i = 0; i < width; ++i) {
    if (!(std::abs(row[i]) < kWeightLimit)) return false;
    const float weight = Flushed(row[i]);
    least = std::min(least, weight);
    largest = std::max(largest, weight);
  }
  const int64_t bits = BitsOf(format);
  const double offset = least;
  const double range = (largest - offset) / static_cast<double>((1 << bits) - 1);
  const float scale = range < kLeastScale ? 0.0f : static_cast<float>(range);
  words[0] = scale;
  words[1] = least;
  auto* const bytes = reinterpret_cast<uint8_t*>(words + kHeaderWords);
  std::memset(bytes, 0, (RowWords(format, width) - kHeaderWords) * sizeof(float));
  if (scale == 0) return true;
  for (int64_t i = 0; i < width; ++i) {
    const auto code = static_cast<uint8_t>(std::nearbyint((Flushed(row[i]) - offset) / scale));
    const int64_t bit = i * bits;
    bytes[bit / 8] |= static_cast<uint8_t>(code << bit % 8);
  }
  return true;
}

void DecodeRow(RowFormat format, const float* words, int64_t width, float* row) {
  const FloatVec scale = Broadcast(words[0]);
  const FloatVec offset = Broadcast(words[1]);
  const auto* bytes = reinterpret_cast<const char*>(words + kHeaderWords);
  if (format == RowFormat::kInt8) {
    uint64_t codes;
    for (; width > kCodesAtOnce / 2; width -= kCodesAtOnce) {
      std::memcpy(&codes, bytes, sizeof(codes));
      DecodeEight(codes, scale, offset, row);
      bytes += kCodesAtOnce;
      row += kCodesAtOnce;
    }
    if (width <= 0) return;
    uint32_t last;  // a row has whole words
    std::memcpy(&last, bytes, sizeof(last));
    DecodeEight(last, scale, offset, row);
    return;
  }
  for (int64_t i = 0; i < width; i += kCodesAtOnce) {
    uint32_t halves;
    std::memcpy(&halves, bytes + i / 2, sizeof(halves));
    DecodeEight(Spread(halves), scale, offset, row + i);
  }
}

}  // namespace elastor
