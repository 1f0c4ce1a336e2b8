#ifndef ELASTOR_CORE_CUDA_EMULATION_BLOCK_H_
#define ELASTOR_CORE_CUDA_EMULATION_BLOCK_H_

#include <cstddef>

#include "core/cuda/emulation/language.h"

namespace elastor::cuda::emulation {

// A kernel with its arguments; called once a thread.
struct Body {
  void (*run)(void* context);
  void* context;
};

// Most bytes of dynamic shared memory that a block can have.
inline constexpr int kMaxSharedBytes = 227 << 10;

// Runs a grid on the calling thread: blocks one after another, the threads of a block as fibers
// that switch where they wait for each other. One grid at a time in a process.
void RunGrid(dim3 grid, dim3 block, size_t shared_bytes, Body body);

// Called in a kernel: returns the dynamic shared memory of the block.
void* DynamicSharedMemory();

// Called in a kernel at the declaration of a __shared__ variable: fills it with 0xff bytes once a
// block.
void PoisonSharedBytes(void* variable, size_t bytes);
template <typename T>
void PoisonShared(T& variable) {
  PoisonSharedBytes(&variable, sizeof(T));
}

// Writes a text for messages: "thread (1, 0, 0) of block (7, 0, 0)", or nothing outside a kernel.
// Safe in signal handlers.
void DescribeRunningThread(char* text, size_t bytes);

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_BLOCK_H_
