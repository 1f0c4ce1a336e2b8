#ifndef ELASTOR_CORE_CUDA_FRAGMENTS_H_
#define ELASTOR_CORE_CUDA_FRAGMENTS_H_

#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/launch.h"

// For kernel sources: products of small matrices that a warp's tensor cores compute together (PTX
// ISA, mma.sync m16n8k8 of TF32 and m16n8k16 of BF16). Their operands are spread over the lanes:
//   sums [16, 8]          lane l has columns 2 (l % 4), + 1 of rows l / 4 and l / 4 + 8
//   left [16, depth]      of the same rows, a fourth of the depths
//   right [depth, 8]      of column l / 4, the same depths
// Rounded sums serve as a left operand without moving between lanes (SetLeft); BF16 takes two of
// them side by side. Then a lane's depths equal its columns, which in TF32 differs from PTX's
// order: the right operand must come from RightOfSums. All lanes of a warp call together. The code
// assumes that an element of the sums depends only on its row of the left operand, its column of
// the right operand, and the device's model.

namespace elastor::cuda {

template <typename A>
struct Fragments;

struct SumFragment {
  float v[4] = {};  // (row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1)

  // Returns the distance of element i's row (column) from the first element's.
  static constexpr int Row(int i) { return i / 2 * 8; }
  static constexpr int Column(int i) { return i % 2; }
};
struct LeftFragment {
  uint32_t r[4];
};
struct RightFragment {
  uint32_t r[2];
};

// The row and the column of the first element of a SumFragment that the running thread holds.
__device__ inline int FragmentRow() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ inline int FragmentColumn() { return static_cast<int>(threadIdx.x) % 4 * 2; }

// TF32: factors are floats of 10 bits of mantissa.
template <>
struct Fragments<float> {
  static constexpr int kDepth = 8;

  __device__ static float Factor(float value) { return RoundToTf32(value); }
  // Sets columns 8 eight, 8 eight + 1, ... of a left operand to factors from sums.
  __device__ static void SetLeft(LeftFragment* left, int /*eight*/, const float (&factors)[4]) {
    for (int i = 0; i < 4; ++i) left->r[i / 2 + i % 2 * 2] = __float_as_uint(factors[i]);
  }
  // Loads a left operand from shared memory; element (row, depth) is at[row * row_step + depth *
  // depth_step].
  __device__ static LeftFragment Left(const float* at, int row_step, int depth_step) {
    at += FragmentRow() * row_step + FragmentColumn() / 2 * depth_step;
    const float* const second = at + 8 * row_step;
    return {{__float_as_uint(at[0]), __float_as_uint(second[0]),
             __float_as_uint(at[4 * depth_step]), __float_as_uint(second[4 * depth_step])}};
  }
  // Loads the right operand that belongs to Left.
  __device__ static RightFragment Right(const float* at, int column_step, int depth_step) {
    at += FragmentRow() * column_step + FragmentColumn() / 2 * depth_step;
    return {{__float_as_uint(at[0]), __float_as_uint(at[4 * depth_step])}};
  }
  // Loads the right operand that belongs to SetLeft.
  __device__ static RightFragment RightOfSums(const float* at, int column_step, int depth_step) {
    at += FragmentRow() * column_step + FragmentColumn() * depth_step;
    return {{__float_as_uint(at[0]), __float_as_uint(at[depth_step])}};
  }
  __device__ static void MultiplyAdd(const LeftFragment& left, const RightFragment& right,
                                     SumFragment* sums) {
    MultiplyTf32(left.r, right.r, sums->v);
  }
};

template <>
struct Fragments<BFloat16> {
  static constexpr int kDepth = 16;

  __device__ static BFloat16 Factor(BFloat16 value) { return value; }
  __device__ static BFloat16 Factor(float value) { return BFloat16(value); }
  __device__ static void SetLeft(LeftFragment* left, int eight, const BFloat16 (&factors)[4]) {
    left->r[2 * eight] = Pair(factors[0], factors[1]);
    left->r[2 * eight + 1] = Pair(factors[2], factors[3]);
  }
  // Where a step is 1, pairs of elements are aligned to 4 bytes.
  __device__ static LeftFragment Left(const BFloat16* at, int row_step, int depth_step) {
    at += FragmentRow() * row_step + FragmentColumn() * depth_step;
    LeftFragment left;
    for (int i = 0; i < 4; ++i) {
      left.r[i] = Load(at + i % 2 * 8 * row_step + i / 2 * 8 * depth_step, depth_step);
    }
    return left;
  }
  __device__ static RightFragment Right(const BFloat16* at, int column_step, int depth_step) {
    at += FragmentRow() * column_step + FragmentColumn() * depth_step;
    return {{Load(at, depth_step), Load(at + 8 * depth_step, depth_step)}};
  }
  __device__ static RightFragment RightOfSums(const BFloat16* at, int column_step, int depth_step) {
    return Right(at, column_step, depth_step);
  }
  __device__ static void MultiplyAdd(const LeftFragment& left, const RightFragment& right,
                                     SumFragment* sums) {
    MultiplyBFloat16(left.r, right.r, sums->v);
  }

 private:
  __device__ static uint32_t Pair(BFloat16 first, BFloat16 second) {
    return static_cast<uint32_t>(second.bits) << 16 | first.bits;
  }
  __device__ static uint32_t Load(const BFloat16* at, int step) {
    return step == 1 ? *reinterpret_cast<const uint32_t*>(at) : Pair(at[0], at[step]);
  }
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_FRAGMENTS_H_
