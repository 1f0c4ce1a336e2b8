#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_KERNELS_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_KERNELS_H_

#include "core/kernels/cpu/kernel_table.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// The entries of KernelTable. Files that define them call no inline functions that the compiler
// might emit in this build: no CHECK, no container, no std::min.

template <typename T>
void MatMulKernel(const PackedTiles<T>& a, const Run<T>* runs, int64_t run_count, Panels<T> y,
                  const Epilogue<T>& epilogue);
template <typename T>
void GatedUpProjectionKernel(const PackedTiles<T>& w, const Run<T>* runs, int64_t run_count,
                             const T* bias1, const T* bias2, Activation activation, Panels<T> h,
                             Panels<T> first_factor, Panels<T> second_factor);
template <typename T>
void WeightGradientKernel(const LeafRows* leaves, int64_t leaf_count, Panels<const T> dy,
                          Panels<const T> x, T* dw, int64_t stride, Store store);
template <typename T>
void BiasGradientKernel(Panels<const T> dy, T* db, Store store);
template <typename T>
void NormForwardKernel(const NormShape& shape, Panels<const T> x, const T* gain, const T* bias,
                       Panels<T> y, Panels<T> saved_normalized, Panels<T> saved_scale);
template <typename T>
void PairProductsKernel(Panels<const T> a, Panels<const T> b, const FeaturePair* pairs,
                        const FeaturePair* end, Panels<T> z);
template <typename T>
void PairProductsBackwardKernel(Panels<const T> dz, Panels<const T> a, Panels<const T> b,
                                const FeaturePair* pairs, const FeaturePair* end, Panels<T> da,
                                Panels<T> db);
template <typename T>
void NormBackwardKernel(const NormShape& shape, Panels<const T> saved_normalized,
                        Panels<const T> saved_scale, const T* gain, Panels<const T> dy,
                        Panels<const T> residual, Panels<T> dx, T* dgain, T* dbias, Store store,
                        T* scratch);
template <typename T>
void AttentionForwardKernel(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                            Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                            const AttentionMask& mask, Panels<T> y, T* scratch);
template <typename T>
void AttentionBackwardKernel(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                             Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                             const AttentionMask& mask, Panels<const T> dy, Panels<T> dq,
                             Panels<T> dk, Panels<T> dv, Panels<T> dposition_bias, T* scratch);
template <typename T>
void MatrixProductsKernel(const ProductShape& shape, const RowMatrices<const T>& a,
                          const RowMatrices<const T>& b, const RowMatrices<T>& c);

// The number of vectors of rows in one panel.
template <typename T>
inline constexpr int64_t kVectorsPerPanel = kPanelRows / kLanes<T>;

// Returns the address of feature `feature` of the vector-th vector of rows of a view.
template <typename T>
ELASTOR_INLINE T* Line(Panels<T> view, int64_t vector, int64_t feature) {
  return view.Panel(vector / kVectorsPerPanel<T>) + feature * view.feature_stride +
         vector % kVectorsPerPanel<T> * kLanes<T>;
}

ELASTOR_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_KERNELS_H_
