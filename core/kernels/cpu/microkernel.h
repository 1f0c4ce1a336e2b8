#ifndef ELASTOR_CORE_KERNELS_CPU_MICROKERNEL_H_
#define ELASTOR_CORE_KERNELS_CPU_MICROKERNEL_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/kernels/cpu/vec.h"
#include "core/kernels/matmul.h"

namespace elastor {

// The one inner loop of forward products and dX. A tile is up to six rows of the weights by two
// vectors of samples: twelve accumulators, two vectors of activations and one broadcast weight are
// 15 of the 16 registers, and twelve independent FMA chains cover latency x throughput (8 to 10).
inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = 2;
template <typename T>
inline constexpr int kTileLanes = kTileVectors* kLanes<T>;  // a panel is one or two of these

template <typename T, int kRows>
struct Tile {
  Vec<T> v[kRows][kTileVectors];
};

// Features of one segment that are summed in one go.
template <typename T>
struct Run {
  Panels<const T> x;
  bool starts_block = false;  // of kReductionBlock terms, other than the first
};

// Cuts the concatenation of the segments at multiples of kReductionBlock. The result lives until
// the thread's next call.
template <typename T>
std::span<const Run<T>> CutIntoRuns(std::span<const Panels<const T>> segments) {
  thread_local std::vector<Run<T>> runs;
  runs.clear();
  int64_t done = 0;
  for (const Panels<const T>& segment : segments) {
    for (int64_t begin = 0; begin < segment.features;) {
      const int64_t left_in_block = kReductionBlock - done % kReductionBlock;
      const int64_t count = std::min(segment.features - begin, left_in_block);
      runs.push_back({segment.Slice(begin, count), done > 0 && done % kReductionBlock == 0});
      begin += count;
      done += count;
    }
  }
  return runs;
}

// sum += kRows weights (k-major) times activations, one run: the FMA chains go on where they are.
template <typename T, int kRows>
[[gnu::always_inline]] inline const T* ContinueChains(const T* weights, const T* x, int64_t stride,
                                                      int64_t count, Tile<T, kRows>& sum) {
#pragma GCC unroll 2
  for (; count > 0; --count) {
    const Vec<T> x0 = Load(x);
    const Vec<T> x1 = Load(x + kLanes<T>);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const Vec<T> weight = Broadcast(weights[i]);
      sum.v[i][0] = Fma(weight, x0, sum.v[i][0]);
      sum.v[i][1] = Fma(weight, x1, sum.v[i][1]);
    }
    weights += kRows;
    x += stride;
  }
  return weights;
}

enum class Blocks { kOne, kSeveral };  // of kReductionBlock terms

// Sums over all runs, in the order of MatMul, for the lanes from `lane` of panel `panel`.
template <typename T, int kRows, Blocks kBlocks>
[[gnu::always_inline]] inline Tile<T, kRows> Products(const T* weights,
                                                      std::span<const Run<T>> runs, int64_t panel,
                                                      int64_t lane) {
  Tile<T, kRows> sum = {};
  [[maybe_unused]] Tile<T, kRows> total;
  [[maybe_unused]] bool first_block = true;
  const auto close_block = [&]() [[gnu::always_inline]] {
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kTileVectors; ++v) {
        total.v[i][v] = first_block ? sum.v[i][v] : total.v[i][v] + sum.v[i][v];
        sum.v[i][v] = Vec<T>{};
      }
    }
    first_block = false;
  };
  for (const Run<T>& run : runs) {
    if constexpr (kBlocks == Blocks::kSeveral) {
      if (run.starts_block) close_block();
    }
    weights = ContinueChains<T, kRows>(weights, run.x.Panel(panel) + lane, run.x.feature_stride,
                                       run.x.features, sum);
  }
  if constexpr (kBlocks == Blocks::kSeveral) {
    close_block();
    return total;
  }
  return sum;
}

// One panel's features of a view, as the epilogue of a tile sees them: lane 0 of the tile.
template <typename T>
struct PanelLines {
  T* data = nullptr;
  int64_t stride = 0;

  PanelLines(Panels<T> view, int64_t panel, int64_t lane)
      : data(view.data == nullptr ? nullptr : view.Panel(panel) + lane),
        stride(view.feature_stride) {}

  explicit operator bool() const { return data != nullptr; }
  T* At(int64_t feature, int vector) const { return data + feature * stride + vector * kLanes<T>; }
};

// Asks for one panel of a view. Panels of one token lie far apart in a layer's memory, where the
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

// Calls run with std::integral_constant<int, rows>, 1 <= rows <= kMost: tile heights are
// compile-time numbers inside the kernels.
template <int kMost, typename Run>
[[gnu::always_inline]] inline void WithTileRows(int64_t rows, const Run& run) {
  if constexpr (kMost == 1) {
    run(std::integral_constant<int, 1>());
  } else if (rows == kMost) {
    run(std::integral_constant<int, kMost>());
  } else {
    WithTileRows<kMost - 1>(rows, run);
  }
}

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_MICROKERNEL_H_
