#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_SHORT_LEAF_GRADIENT_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_SHORT_LEAF_GRADIENT_H_

#include <cstdint>

#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/square.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// The weight gradient of short leaves. For these, combining eight chains that lie in a register's
// lanes would take longer than the FMAs. Here the lanes are features of x, transposed once for all
// features of dy, and the chains come one after the other, so that they are combined as vectors.

// Returns whether these kernels are used: leaves have few panels on average, and the transposition
// serves many features of dy.
inline bool IsShortLeafGradient(int64_t leaf_count, int64_t panels, int64_t dy_features) {
  constexpr int64_t kMaxPanelsPerLeaf = 4, kMinDyFeatures = 128;
  return panels <= kMaxShortPanels && panels <= kMaxPanelsPerLeaf * leaf_count &&
         dy_features >= kMinDyFeatures;
}

// A tile: kDy features of dy by two vectors of features of x.
inline constexpr int kShortDyTile = 6;
template <typename T>
inline constexpr int64_t kShortColumns = 2 * kLanes<T>;
template <typename T, int kDy>
struct ShortTile {
  Vec<T> v[kDy][2];

  ELASTOR_INLINE void Add(const ShortTile& right) {
#pragma GCC unroll 6
    for (int j = 0; j < kDy; ++j) {
      v[j][0] += right.v[j][0];
      v[j][1] += right.v[j][1];
    }
  }
};

// Chain `chain` of a leaf. x: [row][kShortColumns].
template <typename T, int kDy>
ELASTOR_INLINE ShortTile<T, kDy> ShortChain(const T* dy, int64_t feature_stride,
                                            int64_t panel_stride, const T* x, int64_t panels,
                                            int chain) {
  constexpr int kChains = 8;
  ShortTile<T, kDy> sum = {};
  dy += chain;
  x += chain * kShortColumns<T>;
  for (; panels > 0; --panels) {
#pragma GCC unroll 2
    for (int row = 0; row < kPanelRows; row += kChains) {
      Vec<T> x0 = Load(x);
      Vec<T> x1 = Load(x + kLanes<T>);
      KeepInRegister(x0);
      KeepInRegister(x1);
#pragma GCC unroll 6
      for (int j = 0; j < kDy; ++j) {
        const Vec<T> d = Broadcast(dy[j * feature_stride + row]);
        sum.v[j][0] = MultiplyAdd(d, x0, sum.v[j][0]);
        sum.v[j][1] = MultiplyAdd(d, x1, sum.v[j][1]);
      }
      x += kChains * kShortColumns<T>;
    }
    dy += panel_stride;
  }
  return sum;
}

template <typename T, int kDy>
[[gnu::noinline]] void ShortGradientTile(const LeafRows* leaves, int64_t leaf_count,
                                         Panels<const T> dy, const T* x, int64_t columns, T* dw,
                                         int64_t stride, Store store) {
  for (int j = 0; j < kDy; ++j) PrefetchToWrite(dw + j * stride, columns);
  ShortTile<T, kDy> sums[kMaxLeafSums];
  ShortTile<T, kDy>* newest = sums - 1;
  for (const LeafRows* leaf = leaves; leaf != leaves + leaf_count; ++leaf) {
    const T* const dy_panel = dy.Panel(leaf->first_panel);
    const T* const x_row = x + leaf->first_panel * kPanelRows * kShortColumns<T>;
    const int64_t panels = (leaf->rows + kPanelRows - 1) / kPanelRows;
    const auto chains = [&](int first, int second) [[gnu::always_inline]] {
      const auto chain = [&](int c) [[gnu::always_inline]] {
        return ShortChain<T, kDy>(dy_panel, dy.feature_stride, dy.panel_stride, x_row, panels, c);
      };
      ShortTile<T, kDy> sum = chain(first);
      sum.Add(chain(second));
      return sum;
    };
    ShortTile<T, kDy> even = chains(0, 4);
    even.Add(chains(2, 6));
    ShortTile<T, kDy> odd = chains(1, 5);
    odd.Add(chains(3, 7));
    even.Add(odd);
    *++newest = even;
    for (int merge = 0; merge < leaf->merges; ++merge) {
      --newest;
      newest->Add(newest[1]);
    }
  }
  for (int j = 0; j < kDy; ++j) {
    T* const out = dw + j * stride;
    if (columns == kShortColumns<T>) {
      for (int i = 0; i < 2; ++i) {
        T* const to = out + i * kLanes<T>;
        Save(to, store == Store::kAdd ? Load(to) + sums[0].v[j][i] : sums[0].v[j][i]);
      }
      continue;
    }
    T row[kShortColumns<T>];
    Save(row, sums[0].v[j][0]);
    Save(row + kLanes<T>, sums[0].v[j][1]);
    for (int64_t k = 0; k < columns; ++k) {
      out[k] = store == Store::kAdd ? out[k] + row[k] : row[k];
    }
  }
}

// Transposes x to out: [row][kShortColumns]. Columns that x lacks keep their old contents.
ELASTOR_INLINE void TransposePanels(Panels<const float> x, float* out) {
  for (int64_t panel = 0; panel < x.panels(); ++panel) {
    for (int64_t begin = 0; begin < x.features; begin += kSquare) {
      for (int64_t row = 0; row < kPanelRows; row += kSquare) {
        Square square;
        for (int64_t i = 0; i < kSquare; ++i) {
          const int64_t f = Least(begin + i, x.features - 1);
          square[i] = LoadSquareRow(x.Panel(panel) + f * x.feature_stride + row);
        }
        square = Transposed(square);
        for (int64_t i = 0; i < kSquare; ++i) {
          Save(out + (panel * kPanelRows + row + i) * kShortColumns<float> + begin, square[i]);
        }
      }
    }
  }
}
ELASTOR_INLINE void TransposePanels(Panels<const double> x, double* out) {
  for (int64_t row = 0; row < x.panels() * kPanelRows; ++row) {
    for (int64_t f = 0; f < x.features; ++f) out[row * kShortColumns<double> + f] = x.At(row, f);
  }
}

template <typename T>
void ShortLeafGradient(const LeafRows* leaves, int64_t leaf_count, Panels<const T> dy,
                       Panels<const T> x, T* dw, int64_t stride, Store store, T* rows) {
  static_assert(kShortColumns<T> <= kShortFeatures);
  if (x.features < kShortColumns<T>) {
    // Results of the missing columns are not stored, but their inputs must be finite numbers.
    for (int64_t i = 0; i < x.panels() * kPanelRows * kShortColumns<T>; ++i) rows[i] = 0;
  }
  for (int64_t begin = 0; begin < x.features; begin += kShortColumns<T>) {
    const int64_t columns = Least(kShortColumns<T>, x.features - begin);
    TransposePanels(x.Slice(begin, columns), rows);
    int64_t j = 0;
    for (; j + kShortDyTile <= dy.features; j += kShortDyTile) {
      ShortGradientTile<T, kShortDyTile>(leaves, leaf_count, dy.Slice(j, kShortDyTile), rows,
                                         columns, dw + j * stride + begin, stride, store);
    }
    for (; j < dy.features; ++j) {
      ShortGradientTile<T, 1>(leaves, leaf_count, dy.Slice(j, 1), rows, columns,
                              dw + j * stride + begin, stride, store);
    }
  }
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_SHORT_LEAF_GRADIENT_H_
