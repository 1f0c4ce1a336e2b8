#include "core/kernels/cpu/chains.h"
#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/short_leaf_gradient.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// Dot products along the rows, both operands read as they lie: the accumulators of a tile are the
// chains themselves. 12 of the 16 registers of 32 bytes; 24 of the 32 of 64 bytes, where a register
// of floats holds the chains of two features of x; 24 of NEON's 32, two for each feature's chains.
constexpr int kDyTile = sizeof(FloatVec) == 64 ? 3 : 2;
constexpr int kXTile = sizeof(FloatVec) == 64 ? 8 : 6;

// The tiles of x that are swept before the next features of dy: what is read again should stay in a
// first-level cache of 32 KiB, with the dy beside it.
template <typename T>
int64_t SweepTiles(int64_t panels) {
  constexpr int64_t kTileBytes = kPanelRows * kXTile * kChainFeatures<T> * sizeof(T);
  static_assert(kXTile * kChainFeatures<T> <= kSweepFeatures);
  const int64_t tiles = panels == 0 ? 1 : kSweepBytes / kTileBytes / panels;
  return tiles == 0 ? 1 : tiles;
}

// Copies features [begin, begin + kChainFeatures * units) of x to panels whose chains can be loaded
// whole: [panel][unit][kChainSteps][kChainFeatures][kChains]. The last feature may be missing; the
// one before it stands for it, and its sums are not stored.
template <typename T>
Panels<const T> PackChains(Panels<const T> x, int64_t begin, int64_t units, T* packed) {
  const Panels<const T> result = {packed, x.rows, units * kChainFeatures<T>,
                                  units * kChainFeatures<T> * kPanelRows};
  for (int64_t panel = 0; panel < x.panels(); ++panel) {
    const T* in = x.Panel(panel) + begin * x.feature_stride;
    for (int64_t feature = begin; feature < begin + result.features; feature += kChainFeatures<T>) {
      const int64_t next = feature + 1 < x.features ? x.feature_stride : 0;
      for (int step = 0; step < kChainSteps; ++step) {
        SaveChains(LoadChains(in + step * kChains, next), packed);
        packed += kChains * kChainFeatures<T>;
      }
      in += kChainFeatures<T> * x.feature_stride;
    }
  }
  return result;
}

// kDy features of dy by kX times kChainFeatures of x, packed, of which the first `columns` are
// stored.
template <typename T, int kDy, int kX>
[[gnu::noinline]] void GradientTile(const LeafRows* leaves, int64_t leaf_count, Panels<const T> dy,
                                    Panels<const T> x, int64_t columns, T* dw, int64_t stride,
                                    Store store) {
  for (int j = 0; j < kDy; ++j) PrefetchToWrite(dw + j * stride, columns);
  ChainSums<T> sums[kMaxLeafSums][kDy];
  int sum_count = 0;
  for (const LeafRows* leaf = leaves; leaf != leaves + leaf_count; ++leaf) {
    const T* dy_panel = dy.Panel(leaf->first_panel);
    const T* x_panel = x.Panel(leaf->first_panel);
    Chains<T> chains[kDy][8] = {};
    for (int64_t rows = leaf->rows; rows > 0; rows -= kPanelRows) {
#pragma GCC unroll 2
      for (int step = 0; step < kChainSteps; ++step) {
        Chains<T> d[kDy];
#pragma GCC unroll 3
        for (int j = 0; j < kDy; ++j) {
          d[j] = RepeatChains(dy_panel + j * dy.feature_stride + step * kChains);
          KeepInRegister(d[j]);
        }
#pragma GCC unroll 8
        for (int k = 0; k < kX; ++k) {
          Chains<T> value =
              LoadWholeChains(x_panel + (k * kChainSteps + step) * kChainFeatures<T> * kChains);
          KeepInRegister(value);
#pragma GCC unroll 3
          for (int j = 0; j < kDy; ++j) MultiplyAddChains(d[j], value, chains[j][k]);
        }
      }
      dy_panel += dy.panel_stride;
      x_panel += x.panel_stride;
    }
#pragma GCC unroll 3
    for (int j = 0; j < kDy; ++j) sums[sum_count][j] = CombineChains(chains[j]);
    ++sum_count;
    for (int merges = leaf->merges; merges > 0; --merges, --sum_count) {
      for (int j = 0; j < kDy; ++j) sums[sum_count - 2][j] += sums[sum_count - 1][j];
    }
  }
  for (int j = 0; j < kDy; ++j) SaveSums(sums[0][j], columns, store, dw + j * stride);
}

template <typename T, int kDy, int kX = kXTile>
void GradientTile(int64_t x_tile, const LeafRows* leaves, int64_t leaf_count, Panels<const T> dy,
                  Panels<const T> x, int64_t columns, T* dw, int64_t stride, Store store) {
  if constexpr (kX > 1) {
    if (x_tile < kX) {
      return GradientTile<T, kDy, kX - 1>(x_tile, leaves, leaf_count, dy, x, columns, dw, stride,
                                          store);
    }
  }
  GradientTile<T, kDy, kX>(leaves, leaf_count, dy, x, columns, dw, stride, store);
}

template <typename T>
void SumWeightGradient(const LeafRows* leaves, int64_t leaf_count, Panels<const T> dy,
                       Panels<const T> x, T* dw, int64_t stride, Store store, T* scratch) {
  if (IsShortLeafGradient(leaf_count, dy.panels(), dy.features)) {
    return ShortLeafGradient(leaves, leaf_count, dy, x, dw, stride, store, scratch);
  }
  // Chains of single features can be loaded where they lie.
  const bool pack = kChainFeatures<T> > 1 || x.feature_stride != kPanelRows;
  // In units of kChainFeatures, heights as equal as can be.
  const int64_t units = (x.features + kChainFeatures<T> - 1) / kChainFeatures<T>;
  const int64_t tiles = (units + kXTile - 1) / kXTile;
  const auto tile_begin = [&](int64_t tile) { return tile * units / tiles; };
  const int64_t sweep_tiles = SweepTiles<T>(dy.panels());
  for (int64_t first = 0; first < tiles; first += sweep_tiles) {
    const int64_t last = Least(first + sweep_tiles, tiles);
    const int64_t sweep = tile_begin(first);
    const int64_t sweep_units = tile_begin(last) - sweep;
    const Panels<const T> swept =
        pack ? PackChains(x, sweep * kChainFeatures<T>, sweep_units, scratch)
             : x.Slice(sweep, sweep_units);
    for (int64_t j = 0; j < dy.features; j += kDyTile) {
      const int64_t count = Least(kDyTile, dy.features - j);
      const Panels<const T> dy_tile = dy.Slice(j, count);
      for (int64_t tile = first; tile < last; ++tile) {
        const int64_t x_tile = tile_begin(tile + 1) - tile_begin(tile);
        const int64_t begin = tile_begin(tile) * kChainFeatures<T>;
        const int64_t columns = Least(x_tile * kChainFeatures<T>, x.features - begin);
        const Panels<const T> x_part =
            swept.Slice(begin - sweep * kChainFeatures<T>, x_tile * kChainFeatures<T>);
        const auto run = [&]<int kDy>() [[gnu::always_inline]] {
          GradientTile<T, kDy>(x_tile, leaves, leaf_count, dy_tile, x_part, columns,
                               dw + j * stride + begin, stride, store);
        };
        if (count == kDyTile) {
          run.template operator()<kDyTile>();
        } else if (count == 1) {
          run.template operator()<1>();
        } else {
          run.template operator()<kDyTile - 1>();
        }
      }
    }
  }
}

template <typename T>
void SumBiasGradient(Panels<const T> dy, T* db, Store store) {
  for (int64_t begin = 0; begin < dy.features; begin += kSums<T>) {
    const int64_t count = Least(kSums<T>, dy.features - begin);
    Chains<T> chains[8] = {};
    for (int64_t panel = 0; panel < dy.panels(); ++panel) {
      const T* data = dy.Panel(panel) + begin * dy.feature_stride;
      for (int step = 0; step < kChainSteps; ++step) {
        for (int i = 0; i < 8; ++i) {
          // Features that are missing are the last one again; their sums are not stored.
          const int64_t first = Least(i * kChainFeatures<T>, count - 1);
          const int64_t second = Least(i * kChainFeatures<T> + 1, count - 1);
          AddChains(LoadChains(data + first * dy.feature_stride + step * kChains,
                               (second - first) * dy.feature_stride),
                    chains[i]);
        }
      }
    }
    SaveSums(CombineChains(chains), count, store, db + begin);
  }
}

}  // namespace

template <typename T>
constinit const GradientKernels<T> IsaKernels<T>::gradient = {.weight = SumWeightGradient<T>,
                                                              .bias = SumBiasGradient<T>};
ELASTOR_INSTANTIATE_KERNELS(gradient)

}  // namespace ELASTOR_ISA
}  // namespace elastor
