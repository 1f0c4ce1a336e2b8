#ifndef ELASTOR_CORE_SPECTRUM_SYMMETRIC_MATRIX_H_
#define ELASTOR_CORE_SPECTRUM_SYMMETRIC_MATRIX_H_

#include <cstdint>
#include <span>
#include <vector>

namespace elastor {

// Spectra of single symmetric matrices of up to some thousand rows, in double, by Eigen:
// Householder reflections to tridiagonal form and implicit QL steps (EISPACK tql2, LAPACK dsteqr).
// Absolute error of an eigenvalue about n u times the largest in size, u = 2^-53.
// SymmetricEigenvalues is for many small ones.

// Returns the eigenvalues of `matrix` [n, n], ascending. Only its lower triangle is read. REQUIRES:
// all elements finite.
std::vector<double> EigenvaluesOf(std::span<const double> matrix, int64_t n);

// A = sum_i values[i] v_i v_i^T, values ascending; element j of v_i is vectors[i * n + j].
struct Eigendecomposition {
  std::vector<double> values;
  std::vector<double> vectors;
};
Eigendecomposition Decompose(std::span<const double> matrix, int64_t n);

// How well a positive semidefinite matrix is conditioned, as far as double can tell: an eigenvalue
// below `floor` = 10 n u lambda_max cannot be distinguished from 0.
struct Conditioning {
  double lambda_max = 0;
  double lambda_min = 0;  // smallest eigenvalue; below floor it is noise and may be negative
  double floor = 0;
  int64_t rank = 0;  // number of eigenvalues that are at least floor

  bool resolved() const { return lambda_max > 0 && lambda_min >= floor; }
  // Returns lambda_max / lambda_min; NaN if lambda_min is below floor.
  double condition_number() const;
};
// Returns the conditioning of a matrix with these eigenvalues. REQUIRES: they are ascending and not
// empty.
Conditioning ConditioningOf(std::span<const double> eigenvalues);

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SYMMETRIC_MATRIX_H_
