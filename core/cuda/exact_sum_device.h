#ifndef ELASTOR_CORE_CUDA_EXACT_SUM_DEVICE_H_
#define ELASTOR_CORE_CUDA_EXACT_SUM_DEVICE_H_

// For kernel sources (.cu) only: sums of doubles in a kernel, the bits of ExactSum whatever the
// threads and blocks.

#include <cstdint>

#include "core/cuda/exact_sum_words.h"
#include "core/cuda/launch.h"

namespace elastor::cuda {

// The sum of one thread. Its words stay in registers: Add finds an addend's words by comparison,
// since an indexed array would move to memory. Up to 2^31 addends of all threads together fit.
//
//   ThreadExactSum sum;
//   for (...) sum.Add(value);
//   sum.AddWarpTo(total);   // the whole warp, converged
//   sum.AddBlockTo(total);  // or the whole block: atomic operations only once a block
class ThreadExactSum {
 public:
  __device__ void Add(double value) {
    const ExactAddend addend = SplitForExactSum(value);
#pragma unroll
    for (int i = 0; i < kExactSumDigits; ++i) {
      const int piece = i - addend.first_word;
      words_[i] += piece == 0 ? addend.pieces[0] : 0;
      words_[i] += piece == 1 ? addend.pieces[1] : 0;
      words_[i] += piece == 2 ? addend.pieces[2] : 0;
    }
    words_[kBadAddends] += addend.bad ? 1 : 0;
  }

  // Adds the sums of the warp's 32 threads to *sum in device memory. Blocks are of whole warps.
  __device__ void AddWarpTo(DeviceExactSum* sum) const {
#pragma unroll
    for (int i = 0; i < kExactSumWords; ++i) {
      const unsigned long long word = OverWarp(words_[i]);
      if (threadIdx.x % kWarp == 0) AddWord(word, &sum->words[i]);
    }
  }

  // Adds the sums of all threads of the block to *sum. All of them must call it.
  __device__ void AddBlockTo(DeviceExactSum* sum) const {
    __shared__ unsigned long long of_warps[kExactSumWords][kWarp];
#pragma unroll
    for (int i = 0; i < kExactSumWords; ++i) {
      const unsigned long long word = OverWarp(words_[i]);
      if (threadIdx.x % kWarp == 0) of_warps[i][threadIdx.x / kWarp] = word;
    }
    __syncthreads();
    if (threadIdx.x < kExactSumWords) {
      unsigned long long word = 0;
      for (unsigned w = 0; w < blockDim.x / kWarp; ++w) word += of_warps[threadIdx.x][w];
      AddWord(word, &sum->words[threadIdx.x]);
    }
    __syncthreads();  // the block's next sum reuses this memory
  }

 private:
  static __device__ unsigned long long OverWarp(int64_t value) {
    // Most words of most warps are 0.
    if (__ballot_sync(0xffffffffu, value != 0) == 0) return 0;
    using Word = unsigned long long;
    return OverLanes(static_cast<Word>(value), [](Word a, Word b) { return a + b; });
  }
  static __device__ void AddWord(unsigned long long word, int64_t* to) {
    if (word != 0) atomicAdd(reinterpret_cast<unsigned long long*>(to), word);
  }

  int64_t words_[kExactSumWords] = {};
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EXACT_SUM_DEVICE_H_
