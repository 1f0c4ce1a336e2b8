#ifndef ELASTOR_CORE_CUDA_EXACT_SUM_H_
#define ELASTOR_CORE_CUDA_EXACT_SUM_H_

#include <cstdint>

#include "core/base/exact_sum.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// ExactSum (core/base/exact_sum.h) in device memory: any number of threads add, in any order, by
// integer atomics; the bits are the host's. Words of 32 bits in 64-bit counters, of which 2^31
// addends fit; the last word counts addends that are not finite or out of range.
inline constexpr int kExactSumWords = 11;
struct DeviceExactSum {
  int64_t words[kExactSumWords];
};

// The sums of all ranks: words added element by element (an integer all-reduce) and brought into
// the host's form. For the host, after a copy. Up to 2^20 accumulators may have been added.
ExactSum ToExactSum(const DeviceExactSum& sum);

// sum += values[0..count), and zero of `sums` sums.
void AddToExactSum(Stream& stream, const double* values, int64_t count, DeviceExactSum* sum);
void ClearExactSums(Stream& stream, DeviceExactSum* sums, int64_t count);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EXACT_SUM_H_
