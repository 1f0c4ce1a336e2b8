#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/microkernel.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

template <typename T>
constexpr KernelTable<T> kTable = {
    .tile_rows = kTileRows,
    .matmul = IsaKernels<T>::matmul,
    .gated_up_projection = IsaKernels<T>::gated_up_projection,
    .gradient = IsaKernels<T>::gradient,
    .norm = IsaKernels<T>::norm,
    .pair_products = IsaKernels<T>::pair_products,
    .attention = IsaKernels<T>::attention,
    .dropout = IsaKernels<T>::dropout,
    .matrix_products = IsaKernels<T>::matrix_products,
};

}  // namespace

constinit const KernelTable<float> kFloatKernels = kTable<float>;
constinit const KernelTable<double> kDoubleKernels = kTable<double>;

}  // namespace ELASTOR_ISA
}  // namespace elastor
