#ifndef ELASTOR_CORE_SPECTRUM_SYMMETRIC_EIGENVALUES_H_
#define ELASTOR_CORE_SPECTRUM_SYMMETRIC_EIGENVALUES_H_

#include <cstdint>
#include <vector>

namespace elastor {

// Eigenvalues of kMatrices small symmetric matrices at once, one a vector lane, in double: by
// Householder reflections to tridiagonal form, then the root-free QL iteration of Pal, Walker and
// Kahan with Wilkinson's shift (EISPACK tqlrat, LAPACK dsterf). A lane that has converged keeps its
// values while others go on, so results do not depend on the matrices beside. Every operation is
// exactly rounded and in a fixed order. Absolute error about n eps times the largest eigenvalue.
class SymmetricEigenvalues {
 public:
  static constexpr int64_t kMatrices = 8;

  explicit SymmetricEigenvalues(int64_t n);

  // Element (i, j <= i) of all matrices, kMatrices doubles; filled by the caller before Compute,
  // which overwrites it.
  double* Element(int64_t i, int64_t j) { return &lower_[(i * (i + 1) / 2 + j) * kMatrices]; }
  // REQUIRES: all elements finite and below 2^1000.
  void Compute();
  // After Compute, descending in i: kMatrices doubles.
  const double* Value(int64_t i) const { return &diagonal_[i * kMatrices]; }

 private:
  void Scale();
  void Tridiagonalize();
  void IterateToDiagonal();
  void SortAndUnscale();

  const int64_t n_;
  std::vector<double> lower_;     // [n (n + 1) / 2][kMatrices]
  std::vector<double> diagonal_;  // [n]; then the eigenvalues
  std::vector<double> squares_;   // [n], of the off-diagonal; the last is 0
  std::vector<double> v_;         // [n], of a reflection
  std::vector<double> q_;         // [n]
  std::vector<double> unscale_;   // [1], powers of two
};

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SYMMETRIC_EIGENVALUES_H_
