#ifndef ELASTOR_CORE_KERNELS_CPU_ISA_MICROKERNEL_H_
#define ELASTOR_CORE_KERNELS_CPU_ISA_MICROKERNEL_H_

#include <cstdint>
#include <type_traits>

#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {

// The one inner loop of forward products and dX. A tile is up to kTileRows rows of the weights by
// two vectors of samples. Its accumulators, two vectors of activations and one broadcast weight fit
// the registers; each weight loaded serves two FMAs, because x86-64 CPUs do at most two loads a
// cycle; and there are more FMA chains than latency x throughput (8 to 10, on Arm up to 16). With
// NEON GCC keeps a dozen weights in registers, too, so that more than ten rows would not fit.
inline constexpr int kTileRows = kRegisters == 16 ? 6 : sizeof(FloatVec) == 64 ? 13 : 10;
inline constexpr int kTileVectors = 2;
// A panel is a single v4 vector of floats, so a tile of two vectors spans two panels. If the number
// of panels is odd, the last one makes a tile of one vector.
template <typename T>
inline constexpr bool kTileSpansPanels = kLanes<T> == kPanelRows;

template <typename T, int kRows, int kVectors>
struct Tile {
  Vec<T> v[kRows][kVectors];
};

// A view as a tile sees it: from the tile's first sample on, vectors vector_stride elements apart.
template <typename T>
struct TileView {
  T* data = nullptr;
  int64_t feature_stride = 0;
  int64_t vector_stride = 0;
  int64_t next_tile = 0;  // elements to the samples of the tile beside it

  ELASTOR_INLINE TileView(Panels<T> view, int64_t panel, int64_t lane)
      : data(view.data == nullptr ? nullptr : view.Panel(panel) + lane),
        feature_stride(view.feature_stride),
        vector_stride(kTileSpansPanels<T> ? view.panel_stride : kLanes<T>),
        next_tile(kTileSpansPanels<T> ? kTileVectors * view.panel_stride : view.panel_stride) {}

  explicit operator bool() const { return data != nullptr; }
  ELASTOR_INLINE T* At(int64_t feature, int vector) const {
    return data + feature * feature_stride + vector * vector_stride;
  }
};

// sum += kRows weights (k-major) times activations, one run: the chains go on where they are.
template <typename T, int kRows, int kVectors>
ELASTOR_INLINE const T* ContinueChains(const T* weights, TileView<const T> x, int64_t count,
                                       Tile<T, kRows, kVectors>& sum) {
  const T* second = x.data + x.vector_stride;
#pragma GCC unroll 2
  for (; count > 0; --count) {
    Vec<T> lanes[kVectors];
    lanes[0] = Load(x.data);
    if constexpr (kVectors == 2) lanes[1] = Load(second);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vec<T> weight = Broadcast(weights[i]);
      for (int v = 0; v < kVectors; ++v) sum.v[i][v] = MultiplyAdd(weight, lanes[v], sum.v[i][v]);
    }
    weights += kRows;
    x.data += x.feature_stride;
    second += x.feature_stride;
  }
  return weights;
}

// Sums of one block of at most kReductionBlock terms. Returns the run after it.
template <typename T, int kRows, int kVectors>
ELASTOR_INLINE const Run<T>* BlockProducts(const T** weights, const Run<T>* run, const Run<T>* end,
                                           int64_t panel, int64_t lane,
                                           Tile<T, kRows, kVectors>* result) {
  Tile<T, kRows, kVectors> sum = {};
  for (const Run<T>* const first = run; run != end && (run == first || !run->starts_block); ++run) {
    *weights =
        ContinueChains<T, kRows, kVectors>(*weights, {run->x, panel, lane}, run->x.features, sum);
  }
  *result = sum;
  return run;
}

// Sums over all runs, in the order of MatMul, for the samples from `lane` of panel `panel` on.
template <typename T, int kRows, int kVectors>
ELASTOR_INLINE void Products(const T* weights, const Run<T>* run, const Run<T>* end, int64_t panel,
                             int64_t lane, Tile<T, kRows, kVectors>* total) {
  run = BlockProducts(&weights, run, end, panel, lane, total);
  while (run != end) {
    Tile<T, kRows, kVectors> sum;
    run = BlockProducts(&weights, run, end, panel, lane, &sum);
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) total->v[i][v] += sum.v[i][v];
    }
  }
}

// Prefetches kRows features of the tile beside this one, which is computed after all tiles of the
// weights have passed. Prefetching all its lines at once would delay the loads.
template <int kRows, typename T>
ELASTOR_INLINE void PrefetchNext(const TileView<const T>& view, int64_t row) {
  constexpr int kLines = kTileSpansPanels<T> ? kTileVectors : 1;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kLines; ++v) __builtin_prefetch(view.At(row + i, v) + view.next_tile);
  }
}

// Calls body(std::integral_constant<int, vectors>, panel, lane) for the tiles side by side that
// cover `panels` panels.
template <typename T, typename Body>
ELASTOR_INLINE void ForTileColumns(int64_t panels, const Body& body) {
  using Two = std::integral_constant<int, 2>;
  if constexpr (kTileSpansPanels<T>) {
    int64_t panel = 0;
    for (; panel + 2 <= panels; panel += 2) body(Two(), panel, 0);
    if (panel < panels) body(std::integral_constant<int, 1>(), panel, 0);
  } else {
    for (int64_t panel = 0; panel < panels; ++panel) {
      for (int64_t lane = 0; lane < kPanelRows; lane += 2 * kLanes<T>) body(Two(), panel, lane);
    }
  }
}

// Prefetches one panel of a view. Panels of one token lie far apart in a layer's memory, where the
// hardware does not see the next one coming.
template <typename T>
inline void PrefetchPanel(Panels<const T> view, int64_t panel) {
  if (view.data == nullptr || panel >= view.panels()) return;
  const T* line = view.Panel(panel);
  for (int64_t f = 0; f < view.features; ++f) {
    __builtin_prefetch(line);
    line += view.feature_stride;
  }
}

// Prefetches `count` panels of all runs, from panel `first` on.
template <typename T>
inline void PrefetchRuns(const Run<T>* runs, int64_t run_count, int64_t first, int count) {
  for (int64_t r = 0; r < run_count; ++r) {
    for (int64_t p = first; p < first + count; ++p) PrefetchPanel(runs[r].x, p);
  }
}

// Calls run with std::integral_constant<int, rows>, 1 <= rows <= kMost: tile heights are
// compile-time numbers inside the kernels.
template <int kMost, typename Run>
ELASTOR_INLINE void WithTileRows(int64_t rows, const Run& run) {
  if constexpr (kMost == 1) {
    run(std::integral_constant<int, 1>());
  } else if (rows == kMost) {
    run(std::integral_constant<int, kMost>());
  } else {
    WithTileRows<kMost - 1>(rows, run);
  }
}

}  // namespace ELASTOR_ISA
}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ISA_MICROKERNEL_H_
