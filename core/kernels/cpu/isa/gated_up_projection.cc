#include "core/kernels/cpu/activate.h"
#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/microkernel.h"
#include "core/kernels/cpu/isa/one_row.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// Tiles whose activations are computed together: an activation is a long chain of dependent
// operations, and a core overlaps it with other activations but hardly with the next product.
constexpr int kTilesPerBatch = 4;

// What surrounds the two products, as a tile sees it.
template <typename T>
struct TileGate {
  const T* bias1;
  const T* bias2;
  TileView<T> h;
  TileView<T> first_factor;
  TileView<T> second_factor;
};

// Finishes `count` rows from `row` on: sums holds them of p, then of q, kVectors vectors each.
template <typename T>
using FinishPairs = void(const Vec<T>* sums, int64_t count, int64_t row, const TileGate<T>& gate);

// Training without biases, as in eq. 4, is known to the compiler: no test between vectors.
enum class Gate { kNoBiasAllFactors, kAny };

// Not inlined into the products: the loop is the same for tiles of every height.
template <typename T, int kVectors, Gate kGate, typename Function>
[[gnu::noinline]] void ActivateAndGate(const Vec<T>* sums, int64_t count, int64_t row,
                                       const TileGate<T>& gate) {
  constexpr bool kAny = kGate == Gate::kAny;
  const Vec<T>* const q_sums = sums + count * kVectors;
  T* h = gate.h.At(row, 0);
  T* first_factor = gate.first_factor.At(row, 0);
  T* second_factor = gate.second_factor.At(row, 0);
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Vec<T> p = sums[i * kVectors + v];
      Vec<T> q = q_sums[i * kVectors + v];
      if (kAny && gate.bias1 != nullptr) p += Broadcast(gate.bias1[row + i]);
      if (kAny && gate.bias2 != nullptr) q += Broadcast(gate.bias2[row + i]);
      const ValueAndSlope<Vec<T>> act = Function()(p);
      Save(h + v * gate.h.vector_stride, act.value * q);
      if (!kAny || gate.first_factor) {
        Save(first_factor + v * gate.first_factor.vector_stride, q * act.slope);
      }
      if (!kAny || gate.second_factor) {
        Save(second_factor + v * gate.second_factor.vector_stride, act.value);
      }
    }
    h += gate.h.feature_stride;
    first_factor += gate.first_factor.feature_stride;
    second_factor += gate.second_factor.feature_stride;
  }
}

// All tiles of one height, from `tile` on, at the samples from `lane` of panel `panel` on. Returns
// the first tile of another height.
template <typename T, int kRows, int kVectors>
[[gnu::noinline]] const typename PackedMatrix<T>::Tile* RunPairs(
    const T* weights, const typename PackedMatrix<T>::Tile* tile,
    const typename PackedMatrix<T>::Tile* end, const Run<T>* runs, int64_t run_count, int64_t panel,
    int64_t lane, const TileGate<T> gate, FinishPairs<T>* finish) {
  Tile<T, 2 * kRows, kVectors> sums[kTilesPerBatch];
  while (tile != end && tile->height == kRows) {
    const auto* first = tile;
    for (int i = 0; i < kTilesPerBatch && tile != end && tile->height == kRows; ++i, ++tile) {
      Products(weights + tile->offset, runs, runs + run_count, panel, lane, &sums[i]);
    }
    for (int64_t i = 0; i < tile - first; ++i) {
      finish(&sums[i].v[0][0], kRows, first[i].row, gate);
    }
  }
  return tile;
}

// A view of one row; the padded rows beside it get 0. The activations of a tile's rows are
// computed side by side.
template <typename T, typename Function>
void RunOneRow(const PackedTiles<T>& w, const Run<T>* runs, int64_t run_count, const T* bias1,
               const T* bias2, Panels<T> h, Panels<T> first_factor, Panels<T> second_factor) {
  const auto finish = [&](const typename PackedMatrix<T>::Tile& tile, T* sums) {
    T* const q = sums + tile.height;
    T value[kOneRowVectors<T> * kLanes<T>], slope[kOneRowVectors<T> * kLanes<T>];
    for (int64_t i = 0; bias1 != nullptr && i < tile.height; ++i) sums[i] += bias1[tile.row + i];
    for (int64_t i = 0; bias2 != nullptr && i < tile.height; ++i) q[i] += bias2[tile.row + i];
    for (int v = 0; v < kOneRowVectors<T>; ++v) {
      const ValueAndSlope<Vec<T>> act = Function()(Load(sums + v * kLanes<T>));
      Save(value + v * kLanes<T>, act.value);
      Save(slope + v * kLanes<T>, act.slope);
    }
    const auto fill = [&](Panels<T> view, int64_t i, T number) {
      T* const line = view.data + (tile.row + i) * view.feature_stride;
      for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) Save(line + lane, Vec<T>{});
      *line = number;
    };
    for (int64_t i = 0; i < tile.height; ++i) {
      fill(h, i, value[i] * q[i]);
      if (first_factor.data != nullptr) fill(first_factor, i, q[i] * slope[i]);
      if (second_factor.data != nullptr) fill(second_factor, i, value[i]);
    }
  };
  ForTilesOfOneRow(w, 2, runs, run_count, finish);
}

template <typename T>
void RunGatedUpProjection(const PackedTiles<T>& w, const Run<T>* runs, int64_t run_count,
                          const T* bias1, const T* bias2, Activation activation, Panels<T> h,
                          Panels<T> first_factor, Panels<T> second_factor) {
  const bool training = bias1 == nullptr && bias2 == nullptr && first_factor.data != nullptr &&
                        second_factor.data != nullptr;
  WithActivation(activation, [&]<typename Function>(Function) {
    if (h.rows == 1) {
      return RunOneRow<T, Function>(w, runs, run_count, bias1, bias2, h, first_factor,
                                    second_factor);
    }
    ForTileColumns<T>(h.panels(), [&]<int kVectors>(std::integral_constant<int, kVectors>,
                                                    int64_t panel, int64_t lane) {
      PrefetchRuns(runs, run_count, panel + kVectors, kVectors);
      const TileGate<T> gate = {bias1,
                                bias2,
                                {h, panel, lane},
                                {first_factor, panel, lane},
                                {second_factor, panel, lane}};
      FinishPairs<T>* const finish =
          training ? ActivateAndGate<T, kVectors, Gate::kNoBiasAllFactors, Function>
                   : ActivateAndGate<T, kVectors, Gate::kAny, Function>;
      const auto* tile = w.begin;
      const auto run = [&]<int kRows>(std::integral_constant<int, kRows>) {
        tile = RunPairs<T, kRows, kVectors>(w.data, tile, w.end, runs, run_count, panel, lane, gate,
                                            finish);
      };
      while (tile != w.end) WithTileRows<kTileRows / 2>(tile->height, run);
    });
  });
}

}  // namespace

template <typename T>
constinit GatedUpProjectionKernel<T>* const IsaKernels<T>::gated_up_projection =
    RunGatedUpProjection<T>;
ELASTOR_INSTANTIATE_KERNELS(gated_up_projection)

}  // namespace ELASTOR_ISA
}  // namespace elastor
