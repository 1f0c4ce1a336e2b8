#ifndef ELASTOR_CORE_BASE_BUILD_CONFIG_H_
#define ELASTOR_CORE_BASE_BUILD_CONFIG_H_

// The only file that asks the preprocessor about the build. Bazel decides what a build consists of
// by choosing between source files (third_party/cuda/defs.bzl).

// Marks functions that the host and device kernels share: nvcc needs its own attributes on them.
#ifdef __CUDACC__
#define ELASTOR_HOST_DEVICE __host__ __device__
#else
#define ELASTOR_HOST_DEVICE
#endif

#endif  // ELASTOR_CORE_BASE_BUILD_CONFIG_H_
