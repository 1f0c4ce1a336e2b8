#include "core/kernels/row_matrices.h"

#include <type_traits>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
namespace {

// Where a matrix lies for the lanes of one vector: steps in elements.
template <typename T>
struct Lanes {
  T* data;
  int64_t row_step;
  int64_t column_step;

  Lanes(const RowMatrix<T>& matrix, int64_t panel, int64_t lane)
      : data(matrix.view.Panel(panel) + lane),
        row_step(matrix.row_step * matrix.view.feature_stride),
        column_step(matrix.column_step * matrix.view.feature_stride) {}
  T* At(int64_t i, int64_t j) const { return data + i * row_step + j * column_step; }
};

// kRows x kColumns elements of c, from (i, j) on.
template <int kRows, int kColumns, typename T>
void Tile(int64_t k, const Lanes<const T>& a, const Lanes<const T>& b, const Lanes<const T>* addend,
          const Lanes<T>& c, int64_t i, int64_t j) {
  Vec<T> sums[kRows][kColumns] = {};
  for (int64_t t = 0; t < k; ++t) {
    Vec<T> factors[kColumns];
    for (int v = 0; v < kColumns; ++v) factors[v] = Load(b.At(t, j + v));
    for (int u = 0; u < kRows; ++u) {
      const Vec<T> factor = Load(a.At(i + u, t));
      for (int v = 0; v < kColumns; ++v) sums[u][v] = Fma(factor, factors[v], sums[u][v]);
    }
  }
  for (int u = 0; u < kRows; ++u) {
    for (int v = 0; v < kColumns; ++v) {
      if (addend != nullptr) sums[u][v] += Load(addend->At(i + u, j + v));
      Save(c.At(i + u, j + v), sums[u][v]);
    }
  }
}

}  // namespace

template <typename T>
void MultiplyRowMatrices(int64_t m, int64_t n, int64_t k, const RowMatrix<const T>& a,
                         const RowMatrix<const T>& b, Panels<const T> addend,
                         const RowMatrix<T>& c) {
  CHECK(a.view.rows == c.view.rows && b.view.rows == c.view.rows);
  CHECK(a.view.features == m * k && b.view.features == k * n && c.view.features == m * n);
  constexpr int kTile = 3;  // nine sums, three factors and one: 13 of 16 registers
  for (int64_t panel = 0; panel < c.view.panels(); ++panel) {
    for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
      const Lanes<const T> a_lanes(a, panel, lane);
      const Lanes<const T> b_lanes(b, panel, lane);
      const Lanes<T> c_lanes(c, panel, lane);
      const Lanes<const T> addend_lanes({addend, c.row_step, c.column_step}, panel, lane);
      const Lanes<const T>* const added = addend.data == nullptr ? nullptr : &addend_lanes;
      const auto rows = [&]<int kRows>(std::integral_constant<int, kRows>, int64_t i) {
        int64_t j = 0;
        for (; j + kTile <= n; j += kTile) {
          Tile<kRows, kTile, T>(k, a_lanes, b_lanes, added, c_lanes, i, j);
        }
        for (; j < n; ++j) Tile<kRows, 1, T>(k, a_lanes, b_lanes, added, c_lanes, i, j);
      };
      int64_t i = 0;
      for (; i + kTile <= m; i += kTile) rows(std::integral_constant<int, kTile>(), i);
      for (; i < m; ++i) rows(std::integral_constant<int, 1>(), i);
    }
  }
}

ELASTOR_INSTANTIATE(MultiplyRowMatrices, float, double)

}  // namespace elastor
