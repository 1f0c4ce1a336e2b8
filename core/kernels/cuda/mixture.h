#ifndef ELASTOR_CORE_KERNELS_CUDA_MIXTURE_H_
#define ELASTOR_CORE_KERNELS_CUDA_MIXTURE_H_

#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/mixture.h"

namespace elastor::cuda {

// core/kernels/mixture.h for device rows, in its order of additions: in FP32 the CPU's bits. x and
// dx: [rows, E, D]; gates and dgates: [rows, 1, T E]; y and dy: [rows, T, D]; p, and dp, which is
// scratch: float [rows][T E].
template <typename A>
void Mixture(Stream& stream, const MixtureShape& shape, Activations<const A> x,
             Activations<const A> gates, float* p, Activations<A> y);
template <typename A>
void MixtureBackward(Stream& stream, const MixtureShape& shape, Activations<const A> x,
                     const float* p, Activations<const A> dy, float* dp, Activations<A> dx,
                     Activations<A> dgates);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_MIXTURE_H_
