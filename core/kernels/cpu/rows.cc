#include <algorithm>

#include "core/base/instantiate.h"
#include "core/kernels/cpu/square.h"
#include "core/kernels/cpu/vec.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

// Squares of kSquare rows and features; the last one reaches back over features already done when
// their number is no multiple of kSquare. Returns false where that cannot be.
bool SquaresToPanel(const float* const* rows, Panels<float> y, int64_t row) {
  if (y.features < kSquare) return false;
  for (int64_t begin = 0; begin < y.features; begin += kSquare) {
    const int64_t f = std::min(begin, y.features - kSquare);
    Square square;
    for (int64_t i = 0; i < kSquare; ++i) square[i] = LoadSquareRow(rows[row + i] + f);
    square = Transposed(square);
    for (int64_t i = 0; i < kSquare; ++i) Save(&y.At(row, f + i), square[i]);
  }
  return true;
}
bool SquaresToPanel(const double* const*, Panels<double>, int64_t) { return false; }

bool PanelToSquares(Panels<const float> x, int64_t row, float* rows, int64_t row_stride) {
  if (x.features < kSquare) return false;
  for (int64_t begin = 0; begin < x.features; begin += kSquare) {
    const int64_t f = std::min(begin, x.features - kSquare);
    Square square;
    for (int64_t i = 0; i < kSquare; ++i) square[i] = LoadSquareRow(&x.At(row, f + i));
    square = Transposed(square);
    for (int64_t i = 0; i < kSquare; ++i) {
      Save(rows + (row + i) * row_stride + f, square[i] + SquareRow{});
    }
  }
  return true;
}
bool PanelToSquares(Panels<const double>, int64_t, double*, int64_t) { return false; }

}  // namespace

template <typename T>
void RowsToPanels(const T* const* rows, Panels<T> y) {
  for (int64_t begin = 0; begin < y.panels() * kPanelRows; begin += kSquare) {
    if (begin + kSquare <= y.rows && SquaresToPanel(rows, y, begin)) continue;
    for (int64_t row = begin; row < begin + kSquare; ++row) {
      for (int64_t f = 0; f < y.features; ++f) y.At(row, f) = row < y.rows ? rows[row][f] : T(0);
    }
  }
}

template <typename T>
void PanelsToRows(Panels<const T> x, T* rows, int64_t row_stride) {
  for (int64_t begin = 0; begin < x.rows; begin += kSquare) {
    if (begin + kSquare <= x.rows && PanelToSquares(x, begin, rows, row_stride)) continue;
    for (int64_t row = begin; row < std::min(begin + kSquare, x.rows); ++row) {
      for (int64_t f = 0; f < x.features; ++f) {
        rows[row * row_stride + f] = x.At(row, f) + T{0};
      }
    }
  }
}

ELASTOR_INSTANTIATE(RowsToPanels, float, double)
ELASTOR_INSTANTIATE(PanelsToRows, float, double)

}  // namespace elastor
