#ifndef ELASTOR_CORE_BASE_HOST_DEVICE_H_
#define ELASTOR_CORE_BASE_HOST_DEVICE_H_

// For functions that the host and device kernels share.
#ifdef __CUDACC__
#define ELASTOR_HOST_DEVICE __host__ __device__
#else
#define ELASTOR_HOST_DEVICE
#endif

#endif  // ELASTOR_CORE_BASE_HOST_DEVICE_H_
