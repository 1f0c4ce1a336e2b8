#include "core/kernels/cpu/isa.h"
#include "core/spectrum/spectrum_kernels.h"

namespace elastor {

const SpectrumKernels& ActiveSpectrumKernels() {
  static const SpectrumKernels& kernels =
      ActiveIsa() == Isa::kV4 ? v4::kSpectrumKernels : v3::kSpectrumKernels;
  return kernels;
}

}  // namespace elastor
