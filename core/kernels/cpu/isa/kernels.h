#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_KERNELS_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_KERNELS_H_

#include "core/kernels/cpu/kernel_table.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// The kernels of this instruction set, each defined in the file of its name. These files call no
// inline functions that the compiler might emit in this build: no CHECK, no container, no std::min.
template <typename T>
struct IsaKernels {
  static MatMulKernel<T>* const matmul;
  static GatedUpProjectionKernel<T>* const gated_up_projection;
  static const GradientKernels<T> gradient;
  static const NormKernels<T> norm;
  static const PairProductKernels<T> pair_products;
  static const AttentionKernels<T> attention;
  static DropoutKernel<T>* const dropout;
  static decltype(MatrixProducts<T>)* const matrix_products;
};

// Instantiates the kernels that a file has defined as a member of IsaKernels. The build for
// bfloat16 has no others than float's.
#define ELASTOR_INSTANTIATE_KERNELS_FOR(member, T) \
  template decltype(IsaKernels<T>::member) IsaKernels<T>::member;
#ifdef __AVX512BF16__
#define ELASTOR_INSTANTIATE_KERNELS(member) ELASTOR_INSTANTIATE_KERNELS_FOR(member, float)
#else
#define ELASTOR_INSTANTIATE_KERNELS(member)      \
  ELASTOR_INSTANTIATE_KERNELS_FOR(member, float) \
  ELASTOR_INSTANTIATE_KERNELS_FOR(member, double)
#endif

// The number of vectors of rows in one panel.
template <typename T>
inline constexpr int64_t kVectorsPerPanel = kPanelRows / kLanes<T>;

// Returns the address of feature `feature` of the vector-th vector of rows of a view.
template <typename T>
ELASTOR_INLINE T* Line(Panels<T> view, int64_t vector, int64_t feature) {
  return view.Panel(vector / kVectorsPerPanel<T>) + feature * view.feature_stride +
         vector % kVectorsPerPanel<T> * kLanes<T>;
}

// Fetches the lines of `count` elements that will be written after some work.
template <typename T>
ELASTOR_INLINE void PrefetchToWrite(const T* elements, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(elements + i, 1);
  __builtin_prefetch(elements + count - 1, 1);
}

ELASTOR_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_KERNELS_H_
