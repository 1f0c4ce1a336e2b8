#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_LANE_MATRIX_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_LANE_MATRIX_H_

#include <type_traits>

#include "core/kernels/cpu/isa/kernels.h"

// Products of matrices of which every row has its own, with rows as the lanes.

namespace elastor {
inline namespace ELASTOR_ISA {

// A matrix for each row of a vector of rows: its elements are vectors.
template <typename T>
struct LaneMatrix {
  T* data;
  int64_t row_stride;
  int64_t column_stride;

  ELASTOR_INLINE T* At(int64_t i, int64_t j) const {
    return data + i * row_stride + j * column_stride;
  }
  ELASTOR_INLINE LaneMatrix From(int64_t i, int64_t j) const {
    return {At(i, j), row_stride, column_stride};
  }
  ELASTOR_INLINE LaneMatrix Transposed() const { return {data, column_stride, row_stride}; }
  ELASTOR_INLINE operator LaneMatrix<const T>() const { return {data, row_stride, column_stride}; }
};

// Rows of a product's tile that is computed at once. The tile, a column of one factor and an
// element of the other fit the registers.
inline constexpr int kLaneTileRows = kRegisters == 32 ? 6 : 3;
inline constexpr int kLaneTileColumns = kRegisters == 32 ? 4 : 3;

// c (+)= a b, `terms` columns of a and rows of b. kAdd: the chains go on from c.
template <typename T, int kRows, int kColumns>
void ProductTile(int64_t terms, LaneMatrix<const T> a, LaneMatrix<const T> b, LaneMatrix<T> c,
                 Store store) {
  Vec<T> sum[kRows][kColumns] = {};
  if (store == Store::kAdd) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kColumns; ++j) sum[i][j] = Load(c.At(i, j));
    }
  }
  for (int64_t r = 0; r < terms; ++r) {
    Vec<T> factors[kColumns];
    for (int j = 0; j < kColumns; ++j) factors[j] = Load(b.At(r, j));
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Vec<T> factor = Load(a.At(i, r));
      for (int j = 0; j < kColumns; ++j) sum[i][j] = Fma(factor, factors[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) Save(c.At(i, j), sum[i][j] + Broadcast(T(0)));
  }
}

// Calls tile(std::integral_constant<int, count>) for 0 < count <= kMost.
template <int kMost, typename Tile>
ELASTOR_INLINE void WithCount(int64_t count, const Tile& tile) {
  if constexpr (kMost > 1) {
    if (count < kMost) return WithCount<kMost - 1>(count, tile);
  }
  tile(std::integral_constant<int, kMost>());
}

// c (+)= a b, of rows x columns elements.
template <typename T>
void Product(int64_t rows, int64_t columns, int64_t terms, LaneMatrix<const T> a,
             LaneMatrix<const T> b, LaneMatrix<T> c, Store store) {
  for (int64_t i = 0; i < rows; i += kLaneTileRows) {
    WithCount<kLaneTileRows>(Least(kLaneTileRows, rows - i), [&](auto count) {
      int64_t j = 0;
      for (; j + kLaneTileColumns <= columns; j += kLaneTileColumns) {
        ProductTile<T, count, kLaneTileColumns>(terms, a.From(i, 0), b.From(0, j), c.From(i, j),
                                                store);
      }
      for (; j < columns; ++j) {
        ProductTile<T, count, 1>(terms, a.From(i, 0), b.From(0, j), c.From(i, j), store);
      }
    });
  }
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_LANE_MATRIX_H_
