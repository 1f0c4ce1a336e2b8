#ifndef ELASTOR_EMBEDDING_CUDA_UPDATE_GATE_H_
#define ELASTOR_EMBEDDING_CUDA_UPDATE_GATE_H_

#include <cstdint>

namespace elastor::cuda {

// What decides about an update, in device memory: written by the step once the norm is known, read
// by the optimizers' kernels, so that the host need not wait in between.
struct UpdateGate {
  float scale = 1;      // of gradients: clipping
  int32_t proceed = 1;  // 0: diverged, nothing is updated
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_UPDATE_GATE_H_
