#ifndef ELASTOR_CORE_BASE_BUILD_CONFIG_H_
#define ELASTOR_CORE_BASE_BUILD_CONFIG_H_

// The only place that asks the preprocessor about the build. What a build consists of is Bazel's
// affair, which takes one file or another (third_party/cuda/defs.bzl).

// Marks functions that the host and device kernels share: nvcc wants its own words for them.
#ifdef __CUDACC__
#define ELASTOR_HOST_DEVICE __host__ __device__
#else
#define ELASTOR_HOST_DEVICE
#endif

#endif  // ELASTOR_CORE_BASE_BUILD_CONFIG_H_
