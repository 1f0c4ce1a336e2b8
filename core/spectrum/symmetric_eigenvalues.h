#ifndef ELASTOR_CORE_SPECTRUM_SYMMETRIC_EIGENVALUES_H_
#define ELASTOR_CORE_SPECTRUM_SYMMETRIC_EIGENVALUES_H_

#include <cstdint>

#include "core/spectrum/spectrum_kernels.h"

namespace elastor {

// Eigenvalues of kMatrices small symmetric matrices at once, one a vector lane, in double: by
// Householder reflections to tridiagonal form, then the root-free QL iteration of Pal, Walker and
// Kahan with Wilkinson's shift (EISPACK tqlrat, LAPACK dsterf). A lane goes its own way through the
// iteration, so its results do not depend on the other matrices. Every operation is exactly rounded
// and in a fixed order. Absolute error about n eps times the largest eigenvalue.
class SymmetricEigenvalues {
 public:
  static constexpr int64_t kMatrices = kSpectrumLanes;

  explicit SymmetricEigenvalues(int64_t n);

  // Returns element (i, j <= i) of all matrices, kMatrices doubles. The caller fills it before
  // Compute, which overwrites it.
  double* Element(int64_t i, int64_t j) { return &lower_[(i * (i + 1) / 2 + j) * kMatrices]; }
  // REQUIRES: all elements finite and below 2^1000.
  void Compute();
  // After Compute: returns the i-th largest eigenvalue of all matrices, kMatrices doubles.
  const double* Value(int64_t i) const { return &values_[i * kMatrices]; }

 private:
  const int64_t n_;
  LaneArray lower_;   // [n (n + 1) / 2][kMatrices]
  LaneArray values_;  // [n][kMatrices]
  LaneArray scratch_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SYMMETRIC_EIGENVALUES_H_
