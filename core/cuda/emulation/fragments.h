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
template <typename Holder, typename LeftAt, typename RightAt>
void MultiplyFragments(int depth, const uint32_t (&left)[4], const uint32_t (&right)[2],
                       const Holder& holder, const LeftAt& left_at, const RightAt& right_at,
                       float (&sums)[4]) {
  struct Operands {
    const uint32_t* left;
    const uint32_t* right;
  };
  const Operands own = {left, right};
  constexpr unsigned kAll = 0xffffffffu;
  const uint64_t* const words = WaitForWarp(WarpBarrier::kShuffle, kAll, ToWord(&own));
  const int lane = CurrentLane();
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4;
    const int column = 2 * (lane % 4) + i % 2;
    for (int k = 0; k < depth; ++k) {
      const auto of = [&](int group) {
        return FromWord<const Operands*>(words[4 * group + holder(k)]);
      };
      const float a = left_at(of(row)->left, i / 2, k);
      const float b = right_at(of(column)->right, k);
      sums[i] = std::fma(a, b, sums[i]);
    }
  }
  WaitForWarp(WarpBarrier::kSync, kAll, 0);  // the others have read this lane's operands
}

}  // namespace emulation

inline float RoundToTf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return std::bit_cast<float>((bits + 0x1000u) & 0xffffe000u);
}

inline void MultiplyTf32(const uint32_t (&left)[4], const uint32_t (&right)[2], float (&sums)[4]) {
  const auto seen = [](uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); };
  emulation::MultiplyFragments(
      8, left, right, [](int k) { return k % 4; },
      [&](const uint32_t* r, int second, int k) { return seen(r[second + 2 * (k / 4)]); },
      [&](const uint32_t* r, int k) { return seen(r[k / 4]); }, sums);
}

inline void MultiplyBFloat16(const uint32_t (&left)[4], const uint32_t (&right)[2],
                             float (&sums)[4]) {
  const auto half = [](uint32_t pair, int k) {
    return std::bit_cast<float>(k % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  };
  emulation::MultiplyFragments(
      16, left, right, [](int k) { return k % 8 / 2; },
      [&](const uint32_t* r, int second, int k) { return half(r[second + 2 * (k / 8)], k); },
      [&](const uint32_t* r, int k) { return half(r[k / 8], k); }, sums);
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EMULATION_FRAGMENTS_H_
