#include "core/ops/patch_input.h"

#include <cmath>

#include "core/ops/cpu/kernel.h"

namespace elastor {

template <typename T>
std::unique_ptr<CpuKernel<T>> MakeCpuKernel(const PatchInputOp& op, CpuKernelContext*) {
  const auto forward = [image = op.image](const Pass<T>& pass, const ForwardOperands<T>& o) {
    const int64_t pixels = image.pixels();
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      const Panels<T> e = leaf.Of(o.output);
      const float* const rows = pass.numeric + leaf.first_row * pixels;
      for (int64_t f = 0; f < pixels; ++f) {
        const float* const column = rows + image.PixelAt(f);
        for (int64_t row = 0; row < e.panels() * kPanelRows; ++row) {
          const float value = row < leaf.rows ? column[row * pixels] : 0;
          e.At(row, f) = std::isnan(value) ? T(0) : static_cast<T>(value);
        }
      }
    }
  };
  return KernelOf<T>({}, forward, NothingToCompute());
}

ELASTOR_INSTANTIATE_CPU_KERNEL(PatchInputOp)

}  // namespace elastor
