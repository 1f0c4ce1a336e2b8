#ifndef ELASTOR_CORE_CUDA_EXACT_SUM_DEVICE_H_
#define ELASTOR_CORE_CUDA_EXACT_SUM_DEVICE_H_

// For kernel sources (.cu) only: sums of doubles in a kernel, the bits of ExactSum whatever the
// threads and blocks.

#include <cstdint>

#include "core/cuda/exact_sum_words.h"
#include "core/cuda/launch.h"

namespace elastor::cuda {

// What one thread has summed, in its registers: words are found by comparison, as an index would
// move them to memory. Up to 2^31 addends of all threads together fit.
//
//   ThreadExactSum sum;
//   for (...) sum.Add(value);
//   sum.AddWarpTo(total);   // the whole warp, converged
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
      unsigned long long word = static_cast<unsigned long long>(words_[i]);
      for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        word += __shfl_xor_sync(0xffffffffu, word, distance);
      }
      if (threadIdx.x % kWarp == 0 && word != 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&sum->words[i]), word);
      }
    }
  }

 private:
  int64_t words_[kExactSumWords] = {};
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EXACT_SUM_DEVICE_H_
