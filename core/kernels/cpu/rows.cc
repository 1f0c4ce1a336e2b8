#include <algorithm>
#include <array>

#include "core/kernels/cpu/vec.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

constexpr int kSide = 8;
using Square = std::array<FloatVec, kSide>;

Square Transposed(const Square& in) {
  Square pairs;  // 2 x 2 blocks transposed, then blocks of 2, then of 4
  for (int i = 0; i < kSide; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(in[i], in[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(in[i], in[i + 1]);
  }
  Square quads;
  for (int i = 0; i < kSide; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  Square out;
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    out[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
  return out;
}

// Eight rows at a time in squares of eight features; the last square reaches back over features
// already done when their number is no multiple of eight. Returns false where that cannot be.
bool EightRowsToPanel(const float* const* rows, Panels<float> y, int64_t row) {
  if (y.features < kSide) return false;
  for (int64_t begin = 0; begin < y.features; begin += kSide) {
    const int64_t f = std::min(begin, y.features - kSide);
    Square square;
    for (int i = 0; i < kSide; ++i) square[i] = Load(rows[row + i] + f);
    square = Transposed(square);
    for (int i = 0; i < kSide; ++i) Save(&y.At(row, f + i), square[i]);
  }
  return true;
}
bool EightRowsToPanel(const double* const*, Panels<double>, int64_t) { return false; }

bool PanelToEightRows(Panels<const float> x, int64_t row, float* rows, int64_t row_stride) {
  if (x.features < kSide) return false;
  for (int64_t begin = 0; begin < x.features; begin += kSide) {
    const int64_t f = std::min(begin, x.features - kSide);
    Square square;
    for (int i = 0; i < kSide; ++i) square[i] = Load(&x.At(row, f + i));
    square = Transposed(square);
    for (int i = 0; i < kSide; ++i) Save(rows + (row + i) * row_stride + f, square[i]);
  }
  return true;
}
bool PanelToEightRows(Panels<const double>, int64_t, double*, int64_t) { return false; }

}  // namespace

template <typename T>
void RowsToPanels(const T* const* rows, Panels<T> y) {
  for (int64_t begin = 0; begin < y.panels() * kPanelRows; begin += kSide) {
    if (begin + kSide <= y.rows && EightRowsToPanel(rows, y, begin)) continue;
    for (int64_t row = begin; row < begin + kSide; ++row) {
      for (int64_t f = 0; f < y.features; ++f) y.At(row, f) = row < y.rows ? rows[row][f] : T(0);
    }
  }
}

template <typename T>
void PanelsToRows(Panels<const T> x, T* rows, int64_t row_stride) {
  for (int64_t begin = 0; begin < x.rows; begin += kSide) {
    if (begin + kSide <= x.rows && PanelToEightRows(x, begin, rows, row_stride)) continue;
    for (int64_t row = begin; row < std::min(begin + kSide, x.rows); ++row) {
      for (int64_t f = 0; f < x.features; ++f) rows[row * row_stride + f] = x.At(row, f);
    }
  }
}

template void RowsToPanels<float>(const float* const*, Panels<float>);
template void RowsToPanels<double>(const double* const*, Panels<double>);
template void PanelsToRows<float>(Panels<const float>, float*, int64_t);
template void PanelsToRows<double>(Panels<const double>, double*, int64_t);

}  // namespace elastor
