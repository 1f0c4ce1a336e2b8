#include "core/spectrum/spectrum_kernels.h"

namespace elastor {

const SpectrumKernels& ActiveSpectrumKernels() { return neon::kSpectrumKernels; }

}  // namespace elastor
