#ifndef ELASTOR_CORE_BASE_BYTE_MASK_H_
#define ELASTOR_CORE_BASE_BYTE_MASK_H_

#include <cstddef>
#include <cstdint>

#ifdef __aarch64__
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

namespace elastor {

// kMaskBytes bytes of text, which are compared at once.
inline constexpr size_t kMaskBytes = 32;

#ifdef __aarch64__
class TextBytes {
 public:
  static TextBytes Load(const char* text) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text);
    return {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
  }
  static TextBytes Of(char c) {
    const uint8x16_t bytes = vdupq_n_u8(static_cast<uint8_t>(c));
    return {bytes, bytes};
  }

  // Bit i is set where byte i is other's.
  uint32_t Equal(TextBytes other) const {
    constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vld1q_u8(kBits);
    uint8x16_t sums = vpaddq_u8(vandq_u8(vceqq_u8(low_, other.low_), bits),
                                vandq_u8(vceqq_u8(high_, other.high_), bits));
    sums = vpaddq_u8(sums, sums);
    sums = vpaddq_u8(sums, sums);
    return vgetq_lane_u32(vreinterpretq_u32_u8(sums), 0);
  }

 private:
  TextBytes(uint8x16_t low, uint8x16_t high) : low_(low), high_(high) {}
  uint8x16_t low_;
  uint8x16_t high_;
};
#else
class TextBytes {
 public:
  static TextBytes Load(const char* text) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text));
  }
  static TextBytes Of(char c) { return _mm256_set1_epi8(c); }

  // Bit i is set where byte i is other's.
  uint32_t Equal(TextBytes other) const {
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes_, other.bytes_)));
  }

 private:
  TextBytes(__m256i bytes) : bytes_(bytes) {}
  __m256i bytes_;
};
#endif

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_BYTE_MASK_H_
