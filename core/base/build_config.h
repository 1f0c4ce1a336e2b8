#ifndef ELASTOR_CORE_BASE_BUILD_CONFIG_H_
#define ELASTOR_CORE_BASE_BUILD_CONFIG_H_

// The only place for build switches. Code asks with `if constexpr`, never with the preprocessor,
// so that both branches are always compiled.

// elastor::kCuda: kernels are compiled for CUDA devices (bazel --config=cuda), not for their
// emulation on the host.
#include "core/base/cuda_switch.h"

#endif  // ELASTOR_CORE_BASE_BUILD_CONFIG_H_
