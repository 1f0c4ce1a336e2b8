#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/microkernel.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

template <typename T>
constexpr KernelTable<T> kTable = {
    .tile_rows = kTileRows,
    .matmul = MatMulKernel<T>,
    .gated_up_projection = GatedUpProjectionKernel<T>,
    .weight_gradient = WeightGradientKernel<T>,
    .bias_gradient = BiasGradientKernel<T>,
    .norm_forward = NormForwardKernel<T>,
    .pair_products = PairProductsKernel<T>,
    .pair_products_backward = PairProductsBackwardKernel<T>,
    .norm_backward = NormBackwardKernel<T>,
    .attention_forward = AttentionForwardKernel<T>,
    .attention_backward = AttentionBackwardKernel<T>,
    .matrix_products = MatrixProductsKernel<T>,
};

}  // namespace

constinit const KernelTable<float> kFloatKernels = kTable<float>;
constinit const KernelTable<double> kDoubleKernels = kTable<double>;

}  // namespace ELASTOR_ISA
}  // namespace elastor
