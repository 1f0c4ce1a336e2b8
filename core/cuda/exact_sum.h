#ifndef ELASTOR_CORE_CUDA_EXACT_SUM_H_
#define ELASTOR_CORE_CUDA_EXACT_SUM_H_

#include <cstdint>

#include "core/base/exact_sum.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// ExactSum (core/base/exact_sum.h) in device memory: any number of threads add, in any order, by
// integer atomics; the bits are the host's. Word i counts units of 2^(32 i - 160), each a 64-bit
// counter in which the pieces of 2^31 addends fit; the last word counts addends that are not finite
// or out of range. Kernels add with exact_sum_device.h and read with exact_sum_words.h.
inline constexpr int kExactSumWords = 11;
struct DeviceExactSum {
  int64_t words[kExactSumWords];
};

// Converts a sum that was copied to the host into the host's form. Sums merge by adding their words
// element by element (an integer all-reduce), as long as all their addends together are below 2^31.
ExactSum ToExactSum(const DeviceExactSum& sum);

// *sum += values[0..count).
void AddToExactSum(Stream& stream, const double* values, int64_t count, DeviceExactSum* sum);
// Sets `count` sums to zero.
void ClearExactSums(Stream& stream, DeviceExactSum* sums, int64_t count);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EXACT_SUM_H_
