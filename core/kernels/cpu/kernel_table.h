#ifndef ELASTOR_CORE_KERNELS_CPU_KERNEL_TABLE_H_
#define ELASTOR_CORE_KERNELS_CPU_KERNEL_TABLE_H_

#include <cstdint>

#include "core/kernels/attention.h"
#include "core/kernels/cpu/vec.h"
#include "core/kernels/matmul.h"
#include "core/kernels/matrix_product.h"
#include "core/kernels/norm.h"
#include "core/kernels/pair_products.h"
#include "core/tensor/panels.h"
#include "core/tensor/pass_leaves.h"

namespace elastor {

// Dropout of attention's weights; there is none if the key's rate is 0.
struct AttentionMask {
  DropoutKey key;
  KeptWords kept;
};

// A run of features of one segment of a product's operand that are summed without interruption.
template <typename T>
struct Run {
  Panels<const T> x;
  bool starts_block = false;  // starts the second or a later block of kReductionBlock terms
};

// A view of a PackedMatrix without types of the standard library.
template <typename T>
struct PackedTiles {
  const typename PackedMatrix<T>::Tile* begin = nullptr;
  const typename PackedMatrix<T>::Tile* end = nullptr;
  const T* data = nullptr;
  int64_t columns = 0;
};

// The kernels whose speed depends on the instruction set, a struct for each file of isa/ that holds
// several. The public headers document them; the arguments have been checked.

template <typename T>
using MatMulKernel = void(const PackedTiles<T>& a, const Run<T>* runs, int64_t run_count,
                          Panels<T> y, const Epilogue<T>& epilogue);

template <typename T>
using GatedUpProjectionKernel = void(const PackedTiles<T>& w, const Run<T>* runs, int64_t run_count,
                                     const T* bias1, const T* bias2, Activation activation,
                                     Panels<T> h, Panels<T> first_factor, Panels<T> second_factor);

// Sizes of what a weight gradient rearranges of x at a time: tiles of up to kSweepFeatures features
// that fill kSweepBytes, or one tile; kShortFeatures features if there are few panels.
inline constexpr int64_t kSweepBytes = 20 * 1024;
inline constexpr int64_t kSweepFeatures = 16;
inline constexpr int64_t kMaxShortPanels = 64;
inline constexpr int64_t kShortFeatures = 32;
template <typename T>
struct GradientKernels {
  // scratch: as much as the larger of kMaxShortPanels panels of kShortFeatures features, and
  // dy.panels() of kSweepFeatures.
  void (*weight)(const LeafRows* leaves, int64_t leaf_count, Panels<const T> dy, Panels<const T> x,
                 T* dw, int64_t stride, Store store, T* scratch);
  decltype(BiasGradient<T>)* bias;
};

template <typename T>
struct NormKernels {
  decltype(NormForward<T>)* forward;
  // scratch: kNormScratch * NormScratchWidth(shape.width) elements.
  void (*backward)(const NormShape& shape, Panels<const T> saved_normalized,
                   Panels<const T> saved_scale, const T* gain, Panels<const T> dy,
                   Panels<const T> residual, Panels<T> dx, T* dgain, T* dbias, Store store,
                   T* scratch);
};

template <typename T>
struct PairProductKernels {
  void (*forward)(Panels<const T> a, Panels<const T> b, const FeaturePair* pairs,
                  const FeaturePair* end, Panels<T> z);
  void (*backward)(Panels<const T> dz, Panels<const T> a, Panels<const T> b,
                   const FeaturePair* pairs, const FeaturePair* end, Panels<T> da, Panels<T> db);
};

template <typename T>
using DropoutKernel = void(const DropoutKey& key, KeptWords kept, Panels<const T> x, Panels<T> y);

// scratch: 4 * kAttentionQueries * shape.keys * kPanelRows elements.
template <typename T>
struct AttentionKernels {
  void (*forward)(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                  Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                  const AttentionMask& mask, Panels<T> y, T* scratch);
  void (*backward)(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                   Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                   const AttentionMask& mask, Panels<const T> dy, Panels<T> dq, Panels<T> dk,
                   Panels<T> dv, Panels<T> dposition_bias, T* scratch);
};

// All of one instruction set.
template <typename T>
struct KernelTable {
  int64_t tile_rows;  // most rows of a tile of a PackedMatrix; a tile of pairs has half as many
  MatMulKernel<T>* const& matmul;
  GatedUpProjectionKernel<T>* const& gated_up_projection;
  const GradientKernels<T>& gradient;
  const NormKernels<T>& norm;
  const PairProductKernels<T>& pair_products;
  const AttentionKernels<T>& attention;
  DropoutKernel<T>* const& dropout;
  decltype(MatrixProducts<T>)* const& matrix_products;
};

// The number of queries whose weights are held at a time.
inline constexpr int64_t kAttentionQueries = 24;

// Scratch of norm_backward per feature: eight chains and a sum, for gain and for bias.
inline constexpr int64_t kNormScratch = 18;
// Chains are combined for up to 16 features at a time.
inline constexpr int64_t NormScratchWidth(int64_t width) { return (width + 15) / 16 * 16; }

namespace v3 {
extern const KernelTable<float> kFloatKernels;
extern const KernelTable<double> kDoubleKernels;
}  // namespace v3
namespace v4 {
extern const KernelTable<float> kFloatKernels;
extern const KernelTable<double> kDoubleKernels;
}  // namespace v4
namespace neon {
extern const KernelTable<float> kFloatKernels;
extern const KernelTable<double> kDoubleKernels;
}  // namespace neon

// The table of ActiveIsa().
template <typename T>
const KernelTable<T>& Kernels();

// Returns scratch of GradientKernels<T>::weight, which lives until the thread's next call.
template <typename T>
T* WeightGradientScratch(int64_t panels);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_KERNEL_TABLE_H_
