#include "core/ops/patch_input.h"

#include <cmath>

#include "core/ops/cpu/kernel.h"

namespace elastor {
namespace {

template <typename T>
class PatchInputKernel final : public CpuKernel<T> {
 public:
  PatchInputKernel(const PatchInputOp& op, CpuKernelContext*) : image_(op.image) {}

  KernelTraits traits() const override { return {}; }

  void Forward(const Pass<T>& pass, const KernelMemory<T>&,
               const ForwardOperands<T>& operands) const override {
    const int64_t pixels = image_.pixels();
    for (const LeafRows& leaf : pass.leaves.leaves()) {
      const Panels<T> e = leaf.Of(operands.output);
      const float* const rows = pass.numeric + leaf.first_row * pixels;
      for (int64_t f = 0; f < pixels; ++f) {
        const float* const column = rows + image_.PixelAt(f);
        for (int64_t row = 0; row < e.panels() * kPanelRows; ++row) {
          const float value = row < leaf.rows ? column[row * pixels] : 0;
          e.At(row, f) = std::isnan(value) ? T(0) : static_cast<T>(value);
        }
      }
    }
  }

  void Backward(const Pass<T>&, const KernelMemory<T>&, const BackwardOperands<T>&) const override {
  }

 private:
  const ImageShape image_;
};

}  // namespace

ELASTOR_DEFINE_CPU_KERNEL(PatchInputOp, PatchInputKernel)

}  // namespace elastor
