#ifndef ELASTOR_CORE_KERNELS_CPU_BFLOAT16_H_
#define ELASTOR_CORE_KERNELS_CPU_BFLOAT16_H_

#include <cstdint>
#include <span>

#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/matmul.h"
#include "core/tensor/panels.h"

namespace elastor {

// Products of bfloat16 (Precision::kBFloat16, on CPUs with AVX512-BF16). Two neighbouring terms of
// a chain become one *word*, a pair of bfloat16 in the memory of a float, the first term in the
// lower half; a missing second term is 0. The kernels of isa/ then see a product of half as many
// terms, whose step (MultiplyAdd of core/kernels/cpu/vec.h) is vdpbf16ps. A word is never used as a
// number otherwise.
struct BFloat16Kernels {
  // The kernels of KernelTable on words: rows of weights by pairs of columns, activations by pairs
  // of features, and both operands of a gradient by pairs of rows.
  int64_t tile_rows;
  MatMulKernel<float>* const& matmul;
  GatedUpProjectionKernel<float>* const& gated_up_projection;
  const GradientKernels<float>& gradient;

  // words[i * width + j] = lines 2i and 2i + 1 of a matrix [lines, width] at j.
  void (*pair_lines)(const float* matrix, int64_t lines, int64_t width, float* words);
  // Feature i of words = features 2i and 2i + 1 of the concatenation of the segments.
  void (*pair_features)(const Panels<const float>* segments, int64_t count, Panels<float> words);
  // Row i of words = rows 2i and 2i + 1 of x. words.rows: 8 for every panel of x.
  void (*pair_rows)(Panels<const float> x, Panels<float> words);
};

namespace v4bf16 {
extern const BFloat16Kernels kKernels;
}

// REQUIRES: CpuHasBFloat16() (core/kernels/cpu/isa.h).
const BFloat16Kernels& KernelsOfBFloat16();

// The implementations of matmul.h's functions in this precision; the arguments have been checked.
void MatMulInBFloat16(const PackedTiles<float>& a, std::span<const Panels<const float>> x,
                      Panels<float> y, const Epilogue<float>& epilogue);
void GatedUpProjectionInBFloat16(const PackedTiles<float>& w, Panels<const float> x,
                                 const float* bias1, const float* bias2, Activation activation,
                                 Panels<float> h, Panels<float> first_factor,
                                 Panels<float> second_factor);
void WeightGradientInBFloat16(std::span<const LeafRows> leaves, Panels<const float> dy,
                              Panels<const float> x, float* dw, int64_t stride, Store store);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_BFLOAT16_H_
