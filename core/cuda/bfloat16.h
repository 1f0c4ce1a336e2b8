#ifndef ELASTOR_CORE_CUDA_BFLOAT16_H_
#define ELASTOR_CORE_CUDA_BFLOAT16_H_

#include <bit>
#include <cstdint>

#include "core/base/build_config.h"

namespace elastor::cuda {

// The upper half of a float, in memory as cuBLAS's CUDA_R_16BF has it. Kernels compute in float and
// round once, to nearest, ties to even.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  ELASTOR_HOST_DEVICE explicit BFloat16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (word >> 16) | 0x40u
                                     : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  ELASTOR_HOST_DEVICE explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_BFLOAT16_H_
