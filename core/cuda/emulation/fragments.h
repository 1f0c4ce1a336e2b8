#ifndef ELASTOR_CORE_CUDA_EMULATION_FRAGMENTS_H_
#define ELASTOR_CORE_CUDA_EMULATION_FRAGMENTS_H_

// Included by launch_emulated.h. The products that a warp's tensor cores compute.

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/cuda/emulation/barriers.h"

namespace elastor::cuda {
namespace emulation {

// In a kernel, by all lanes of a warp at once: sums += left right, [16, depth] and [depth, 8], as
// one chain of fused multiply-adds an element, ascending in PTX's number of the depth. Lanes 4 i to
// 4 i + 3 hold row i, row i + 8 (`second`) and column i; holder(k) is the one of them that has
// depth k. left_at(registers, second, k) and right_at(registers, k) are the elements there.
template <int depth, typename Holder, typename LeftAt, typename RightAt>
void MultiplyFragments(const uint32_t (&left)[4], const uint32_t (&right)[2], const Holder& holder,
                       const LeftAt& left_at, const RightAt& right_at, float (&sums)[4]) {
  struct Operands {
    const uint32_t* left;
    const uint32_t* right;
    float* sums;
    bool multiplied;
  };
  Operands own = {left, right, sums, false};
  const uint64_t* const words = WaitForWarp(WarpBarrier::kShuffle, 0xffffffffu, ToWord(&own));
  if (own.multiplied) return;
  // The first lane that goes on does it for all of them.
  const auto of = [words](int lane) { return FromWord<Operands*>(words[lane]); };
  float lefts[16][depth], rights[depth][8], products[16][8];
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k < depth; ++k) {
      const Operands& operands = *of(4 * i + holder(k));
      for (int second = 0; second < 2; ++second) {
        lefts[i + 8 * second][k] = left_at(operands.left, second, k);
      }
      rights[k][i] = right_at(operands.right, k);
    }
  }
  // Lane l has the elements (l / 4, 2 (l % 4) + j), and in its second half those eight rows below.
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      products[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2] = of(lane)->sums[i];
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < depth; ++k) {
      for (int column = 0; column < 8; ++column) {
        products[row][column] = std::fma(lefts[row][k], rights[k][column], products[row][column]);
      }
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      of(lane)->sums[i] = products[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
    }
    of(lane)->multiplied = true;
  }
}

}  // namespace emulation

inline float RoundToTf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return std::bit_cast<float>((bits + 0x1000u) & 0xffffe000u);
}

inline void MultiplyTf32(const uint32_t (&left)[4], const uint32_t (&right)[2], float (&sums)[4]) {
  const auto seen = [](uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); };
  emulation::MultiplyFragments<8>(
      left, right, [](int k) { return k % 4; },
      [&](const uint32_t* r, int second, int k) { return seen(r[second + 2 * (k / 4)]); },
      [&](const uint32_t* r, int k) { return seen(r[k / 4]); }, sums);
}

inline void MultiplyBFloat16(const uint32_t (&left)[4], const uint32_t (&right)[2],
                             float (&sums)[4]) {
  const auto half = [](uint32_t pair, int k) {
    return std::bit_cast<float>(k % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  };
  emulation::MultiplyFragments<16>(
      left, right, [](int k) { return k % 8 / 2; },
      [&](const uint32_t* r, int second, int k) { return half(r[second + 2 * (k / 8)], k); },
      [&](const uint32_t* r, int k) { return half(r[k / 8], k); }, sums);
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EMULATION_FRAGMENTS_H_
