#include "core/theory/matrix.h"

#include <cmath>

#include "core/base/log.h"
#include "core/base/random.h"
#include "core/spectrum/spectrum.h"

namespace elastor {
namespace {

template <typename Combine>
Matrix Elementwise(const Matrix& a, const Matrix& b, const Combine& combine) {
  CHECK_EQ(a.rows, b.rows);
  CHECK_EQ(a.columns, b.columns);
  Matrix result = a;
  for (size_t i = 0; i < result.values.size(); ++i) {
    result.values[i] = combine(a.values[i], b.values[i]);
  }
  return result;
}

}  // namespace

Matrix NormalMatrix(int64_t rows, int64_t columns, double stddev, uint64_t key, uint64_t stream) {
  Matrix matrix(rows, columns);
  FillNormal(key, stream, stddev, rows * columns, matrix.values.data());
  return matrix;
}

// The rows of `a` are the kernel's samples.
Matrix Product(const Matrix& a, const Matrix& b, Activation activation) {
  CHECK_EQ(a.columns, b.rows);
  std::vector<double> memory(PanelElements(a.rows, a.columns) + PanelElements(a.rows, b.columns));
  const Panels<double> x = {memory.data(), a.rows, a.columns, PanelStride(a.columns)};
  const Panels<double> y = {memory.data() + PanelElements(a.rows, a.columns), a.rows, b.columns,
                            PanelStride(b.columns)};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) x.At(i, k) = a(i, k);
  }
  PackedMatrix<double> packed;
  const auto transposed =
      MatrixView<double>::RowMajor(b.values.data(), b.rows, b.columns).Transposed();
  packed.Pack({&transposed, 1});
  const Panels<const double> read = x;
  Epilogue<double> epilogue;
  epilogue.activation = activation;
  MatMul<double>(packed, {&read, 1}, y, epilogue);
  Matrix result(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) result(i, j) = y.At(i, j);
  }
  return result;
}

Matrix Sum(const Matrix& a, const Matrix& b) {
  return Elementwise(a, b, [](double x, double y) { return x + y; });
}

Matrix HadamardProduct(const Matrix& a, const Matrix& b) {
  return Elementwise(a, b, [](double x, double y) { return x * y; });
}

double InnerProduct(const Matrix& a, const Matrix& b) {
  CHECK_EQ(a.values.size(), b.values.size());
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) sum = std::fma(a.values[i], b.values[i], sum);
  return sum;
}

MatrixRanks RanksOf(const Matrix& x) {
  const int64_t features = x.rows * x.columns;
  std::vector<double> memory(PanelElements(1, features));
  const Panels<double> panel = {memory.data(), 1, features, PanelStride(features)};
  for (int64_t f = 0; f < features; ++f) panel.At(0, f) = x.values[f];
  Spectrum spectrum(x.rows, x.columns);
  spectrum.Measure<double>(panel, 0);
  MatrixRanks ranks = {.stable = spectrum.rank(0).stable, .norm = spectrum.singular_value(0, 0)};
  for (int64_t n = 0; n < spectrum.max_rank(); ++n) {
    ranks.algebraic += spectrum.singular_value(n, 0) > kRankTolerance * ranks.norm;
  }
  return ranks;
}

}  // namespace elastor
