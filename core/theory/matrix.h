#ifndef ELASTOR_CORE_THEORY_MATRIX_H_
#define ELASTOR_CORE_THEORY_MATRIX_H_

#include <cstdint>
#include <vector>

#include "core/kernels/matmul.h"

namespace elastor {

// A small matrix in double, row-major: one representation [tokens, width], or weights. What is
// computed of it has one order of additions, hence the same bits everywhere.
struct Matrix {
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(rows * columns) {}

  double& operator()(int64_t i, int64_t j) { return values[i * columns + j]; }
  double operator()(int64_t i, int64_t j) const { return values[i * columns + j]; }

  int64_t rows;
  int64_t columns;
  std::vector<double> values;
};

// Independent N(0, stddev^2): FillNormal(key, stream, ...).
Matrix NormalMatrix(int64_t rows, int64_t columns, double stddev, uint64_t key, uint64_t stream);

// activation(a b), by the kernel MatMul. REQUIRES: a.columns == b.rows.
Matrix Product(const Matrix& a, const Matrix& b, Activation activation = Activation::kIdentity);
// Element by element. REQUIRES: equal shapes.
Matrix Sum(const Matrix& a, const Matrix& b);
Matrix HadamardProduct(const Matrix& a, const Matrix& b);
// <A, B>_F, elements in order. REQUIRES: as many elements.
double InnerProduct(const Matrix& a, const Matrix& b);

// Singular values below this share of the largest count as 0 in MatrixRanks::algebraic:
// representations come in float, and a Gram matrix in double resolves shares above about 1e-7.
inline constexpr double kRankTolerance = 1e-6;

struct MatrixRanks {
  double stable = 0;      // RankElastor, eq. 1; written erank there
  int64_t algebraic = 0;  // numerically
  double norm = 0;        // ||X||_2
};
// Of a zero matrix all 0; NaN, and 0 for the algebraic rank, with an element that is not finite.
MatrixRanks RanksOf(const Matrix& x);

}  // namespace elastor

#endif  // ELASTOR_CORE_THEORY_MATRIX_H_
