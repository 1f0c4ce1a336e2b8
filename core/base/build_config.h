#ifndef ELASTOR_CORE_BASE_BUILD_CONFIG_H_
#define ELASTOR_CORE_BASE_BUILD_CONFIG_H_

namespace elastor {

// The only place for build switches. Code asks with `if constexpr`, never with the preprocessor,
// so that both branches are always compiled.

// CUDA kernels are linked in.
inline constexpr bool kCuda = false;

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_BUILD_CONFIG_H_
