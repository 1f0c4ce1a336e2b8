#ifndef ELASTOR_EMBEDDING_CUDA_UPDATE_GATE_H_
#define ELASTOR_EMBEDDING_CUDA_UPDATE_GATE_H_

#include <cstdint>

namespace elastor::cuda {

// The decision about an update, in device memory. The step writes it once the norm is known, and
// the optimizers' kernels read it, so that the host need not wait in between.
struct UpdateGate {
  float scale = 1;      // factor of the gradients, from clipping
  int32_t proceed = 1;  // 0: diverged, nothing is updated
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_UPDATE_GATE_H_
