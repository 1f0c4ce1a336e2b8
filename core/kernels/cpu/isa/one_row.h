#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_ONE_ROW_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_ONE_ROW_H_

#include <cstdint>

#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/microkernel.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// Products of a view of one row. The other kernels would use only one of the sixteen lanes of its
// panel. Here the lanes are rows of the weights, which lie side by side in a tile: a weight is
// loaded in whole vectors and serves one FMA. An element's additions have the order of Products.

// Vectors that hold a tile's rows; their last lanes hold what comes after them.
template <typename T>
inline constexpr int kOneRowVectors = (kTileRows + kLanes<T> - 1) / kLanes<T>;
static_assert(kOneRowVectors<float> * kLanes<float> <= kPackedPadding);
static_assert(kOneRowVectors<double> * kLanes<double> <= kPackedPadding);

// Calls finish(tile, sums) for every tile: sums[i] belongs to row i of the tile, a pair of tiles
// has the sums of one matrix first, then of the other. matrices: 2 for pairs, else 1.
template <typename T, typename Finish>
ELASTOR_INLINE void ForTilesOfOneRow(const PackedTiles<T>& a, int matrices, const Run<T>* runs,
                                     int64_t run_count, const Finish& finish) {
  constexpr int kTiles = 4;  // side by side: chains enough to cover the FMAs' latency
  constexpr int kVectors = kOneRowVectors<T>;
  for (const auto* first = a.begin; first < a.end; first += kTiles) {
    const T* weights[kTiles];
    int64_t height[kTiles];
    for (int i = 0; i < kTiles; ++i) {
      const auto* tile = first + Least(i, a.end - first - 1);
      weights[i] = a.data + tile->offset;
      height[i] = matrices * tile->height;
    }
    Vec<T> total[kTiles][kVectors];
    for (const Run<T>* run = runs; run != runs + run_count;) {
      Vec<T> sum[kTiles][kVectors] = {};
      const bool first_block = run == runs;
      do {
        const T* x = run->x.data;
        for (int64_t k = run->x.features; k > 0; --k) {
          const Vec<T> value = Broadcast(*x);
#pragma GCC unroll 4
          for (int i = 0; i < kTiles; ++i) {
            for (int v = 0; v < kVectors; ++v) {
              sum[i][v] = MultiplyAdd(Load(weights[i] + v * kLanes<T>), value, sum[i][v]);
            }
            weights[i] += height[i];
          }
          x += run->x.feature_stride;
        }
        ++run;
      } while (run != runs + run_count && !run->starts_block);
      for (int i = 0; i < kTiles; ++i) {
        for (int v = 0; v < kVectors; ++v) {
          total[i][v] = first_block ? sum[i][v] : total[i][v] + sum[i][v];
        }
      }
    }
    for (int i = 0; i < kTiles && first + i < a.end; ++i) {
      T sums[kVectors * kLanes<T>];
      for (int v = 0; v < kVectors; ++v) Save(sums + v * kLanes<T>, total[i][v]);
      finish(first[i], sums);
    }
  }
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_ONE_ROW_H_
