#include "core/spectrum/symmetric_eigenvalues.h"

#include "core/base/log.h"

namespace elastor {

SymmetricEigenvalues::SymmetricEigenvalues(int64_t n)
    : n_(n),
      lower_(n * (n + 1) / 2 * kMatrices),
      values_(n * kMatrices),
      scratch_(kEigenvalueScratch * n * kMatrices) {
  CHECK_GE(n, 1);
}

void SymmetricEigenvalues::Compute() {
  CHECK(ActiveSpectrumKernels().eigenvalues(n_, lower_.data(), values_.data(), scratch_.data()))
      << "n = " << n_;
}

}  // namespace elastor
