#ifndef ELASTOR_CORE_THEORY_MATRIX_H_
#define ELASTOR_CORE_THEORY_MATRIX_H_

#include <cstdint>
#include <vector>

#include "core/kernels/matmul.h"

namespace elastor {

// A small matrix in double, row-major: one representation [tokens, width], or weights. Every result
// computed from it has one order of additions, hence the same bits everywhere.
struct Matrix {
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(rows * columns) {}

  double& operator()(int64_t i, int64_t j) { return values[i * columns + j]; }
  double operator()(int64_t i, int64_t j) const { return values[i * columns + j]; }

  int64_t rows;
  int64_t columns;
  std::vector<double> values;
};

// Returns a matrix of independent N(0, stddev^2) elements: FillNormal(key, stream, ...).
Matrix NormalMatrix(int64_t rows, int64_t columns, double stddev, uint64_t key, uint64_t stream);

// Returns activation(a b), computed by the kernel MatMul. REQUIRES: a.columns == b.rows.
Matrix Product(const Matrix& a, const Matrix& b, Activation activation = Activation::kIdentity);
// Returns a + b element by element. REQUIRES: equal shapes.
Matrix Sum(const Matrix& a, const Matrix& b);
Matrix HadamardProduct(const Matrix& a, const Matrix& b);
// Returns <A, B>_F, adding the elements' products in order. REQUIRES: a and b have equally many
// elements.
double InnerProduct(const Matrix& a, const Matrix& b);

// Singular values below this share of the largest count as 0 in MatrixRanks::algebraic:
// representations come in float, and a Gram matrix in double resolves shares above about 1e-7.
inline constexpr double kRankTolerance = 1e-6;

struct MatrixRanks {
  double stable = 0;      // RankElastor, eq. 1; written erank there
  int64_t algebraic = 0;  // number of singular values above kRankTolerance times the largest
  double norm = 0;        // ||X||_2
};
// Returns the ranks of x: all 0 for a zero matrix. If an element is not finite, all are NaN and the
// algebraic rank is 0.
MatrixRanks RanksOf(const Matrix& x);

}  // namespace elastor

#endif  // ELASTOR_CORE_THEORY_MATRIX_H_
