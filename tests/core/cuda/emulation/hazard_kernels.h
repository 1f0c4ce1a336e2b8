#ifndef ELASTOR_TESTS_CORE_CUDA_EMULATION_HAZARD_KERNELS_H_
#define ELASTOR_TESTS_CORE_CUDA_EMULATION_HAZARD_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"

// Kernels with the mistakes that the emulation must show. Blocks of 128 threads.

namespace elastor::cuda {

enum class Barrier { kNone, kWarp, kBlock };

// out[i] = in[(i + shift) mod 128] through shared memory, with `barrier` between write and read.
void Rotate(Stream& stream, Barrier barrier, int shift, const int* in, int* out);

// out[i] = i for i in [0, count).
void WriteIndices(Stream& stream, int count, int* out);
// out[0] = in[0] + 1.
void AddOne(Stream& stream, const int* in, int* out);
// 4 floats at once, from `in` to `out`.
void CopyFour(Stream& stream, const float* in, float* out);

// out[i] = an element of shared memory that nobody wrote; two blocks, the second after the first
// wrote its own.
void ReadUnwritten(Stream& stream, float* out);
// Writes element `index` of a shared array of 128.
void WriteShared(Stream& stream, int index, int* out);

// __syncthreads in half of the threads, while the others have returned.
void SynchronizeHalf(Stream& stream);
// A shuffle with the full mask in half of each warp's lanes.
void ShuffleHalf(Stream& stream, int* out);

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_EMULATION_HAZARD_KERNELS_H_
