#include "core/kernels/cpu/activate.h"
#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/microkernel.h"
#include "core/kernels/cpu/isa/one_row.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// The epilogue's views, as a tile sees them.
template <typename T>
struct TileEpilogue {
  const T* bias;
  Activation activation;
  TileView<T> derivative;
  TileView<T> unscaled;
  TileView<const T> multiplier;
  TileView<const T> residual;
  TileView<T> second_output;
  TileView<const T> second_multiplier;
  TileView<T> y;

  TileEpilogue(const Epilogue<T>& e, Panels<T> output, int64_t panel, int64_t lane)
      : bias(e.bias),
        activation(e.activation),
        derivative(e.derivative, panel, lane),
        unscaled(e.unscaled, panel, lane),
        multiplier(e.multiplier, panel, lane),
        residual(e.residual, panel, lane),
        second_output(e.second_output, panel, lane),
        second_multiplier(e.second_multiplier, panel, lane),
        y(output, panel, lane) {}
};

// Applies step(sum, row, vector) to every vector of a tile.
template <typename T, int kRows, int kVectors, typename Step>
ELASTOR_INLINE void ForEach(Tile<T, kRows, kVectors>& s, Step step) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) step(s.v[i][v], i, v);
  }
}

// Steps of the epilogue that the compiler knows of, as bits: short products, as in the tokens'
// networks, cannot afford tests between their tiles. kAnySteps tests at run time, and takes several
// blocks of terms.
constexpr unsigned kBias = 1;
constexpr unsigned kMultiplier = 2;
constexpr unsigned kResidual = 4;
constexpr unsigned kSecond = 8;
constexpr unsigned kAnySteps = 16;

template <typename T>
unsigned StepsOf(const Epilogue<T>& e) {
  if (e.activation != Activation::kIdentity || e.derivative.data != nullptr ||
      e.unscaled.data != nullptr) {
    return kAnySteps;
  }
  return (e.bias != nullptr ? kBias : 0) | (e.multiplier.data != nullptr ? kMultiplier : 0) |
         (e.residual.data != nullptr ? kResidual : 0) |
         (e.second_output.data != nullptr ? kSecond : 0);
}

template <typename T, int kRows, int kVectors, unsigned kSteps>
ELASTOR_INLINE void FinishTile(const TileEpilogue<T>& e, int64_t row, Tile<T, kRows, kVectors>& s) {
  if constexpr ((kSteps & kBias) != 0) {
    ForEach(s, [&](Vec<T>& sum, int i, int) { sum += Broadcast(e.bias[row + i]); });
  }
  // Each element is read before it is written: the views may be the same memory.
  ForEach(s, [&](Vec<T>& sum, int i, int v) {
    Vec<T> second;
    if constexpr ((kSteps & kSecond) != 0) second = sum * Load(e.second_multiplier.At(row + i, v));
    if constexpr ((kSteps & kMultiplier) != 0) sum *= Load(e.multiplier.At(row + i, v));
    if constexpr ((kSteps & kResidual) != 0) sum += Load(e.residual.At(row + i, v));
    if constexpr ((kSteps & kSecond) != 0) Save(e.second_output.At(row + i, v), second);
    Save(e.y.At(row + i, v), sum);
  });
}

// Any epilogue, of `rows` rows of kVectors vectors: the loops are the same for tiles of every
// height.
template <typename T, int kVectors>
[[gnu::noinline]] void FinishRows(const TileEpilogue<T>& e, int64_t row, int64_t rows,
                                  Vec<T>* sums) {
  if (e.activation != Activation::kIdentity || e.derivative) {
    WithActivation(e.activation, [&](auto function) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int v = 0; v < kVectors; ++v) {
          Vec<T>& sum = sums[i * kVectors + v];
          if (e.bias != nullptr) sum += Broadcast(e.bias[row + i]);
          const ValueAndSlope<Vec<T>> result = function(sum);
          if (e.derivative) Save(e.derivative.At(row + i, v), result.slope);
          sum = result.value;
        }
      }
    });
  } else if (e.bias != nullptr) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int v = 0; v < kVectors; ++v) sums[i * kVectors + v] += Broadcast(e.bias[row + i]);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      Vec<T> sum = sums[i * kVectors + v];
      if (e.unscaled) Save(e.unscaled.At(row + i, v), sum);
      Vec<T> second = {};
      if (e.second_output) second = sum * Load(e.second_multiplier.At(row + i, v));
      if (e.multiplier) sum *= Load(e.multiplier.At(row + i, v));
      if (e.residual) sum += Load(e.residual.At(row + i, v));
      if (e.second_output) Save(e.second_output.At(row + i, v), second);
      Save(e.y.At(row + i, v), sum);
    }
  }
}

// All tiles of one height, from `tile` on, at the samples from `lane` of panel `panel` on. Returns
// the first tile of another height. The epilogue comes by value: the compiler then knows that
// storing results does not change it.
template <typename T, int kRows, int kVectors, unsigned kSteps>
[[gnu::noinline]] const typename PackedMatrix<T>::Tile* RunTiles(
    const T* weights, const typename PackedMatrix<T>::Tile* tile,
    const typename PackedMatrix<T>::Tile* end, const Run<T>* runs, int64_t run_count, int64_t panel,
    int64_t lane, const TileEpilogue<T> epilogue) {
  for (; tile != end && tile->height == kRows; ++tile) {
    if constexpr ((kSteps & kMultiplier) != 0) {
      PrefetchNext<kRows>(epilogue.multiplier, tile->row);
    }
    if constexpr ((kSteps & kSecond) != 0) {
      PrefetchNext<kRows>(epilogue.second_multiplier, tile->row);
    }
    const T* k = weights + tile->offset;
    Tile<T, kRows, kVectors> sum;
    if constexpr (kSteps == kAnySteps) {
      Products(k, runs, runs + run_count, panel, lane, &sum);
      FinishRows<T, kVectors>(epilogue, tile->row, kRows, &sum.v[0][0]);
    } else {
      BlockProducts(&k, runs, runs + run_count, panel, lane, &sum);
      FinishTile<T, kRows, kVectors, kSteps>(epilogue, tile->row, sum);
    }
  }
  return tile;
}

// Longer products take long enough over a panel for the hardware to fetch the next one, and would
// have the prefetched panel push the current one out of the first-level cache.
constexpr int64_t kMaxPrefetchColumns = 256;

template <typename T, unsigned kSteps>
void RunPanels(const PackedTiles<T>& a, const Run<T>* runs, int64_t run_count, Panels<T> y,
               const Epilogue<T>& epilogue) {
  ForTileColumns<T>(y.panels(), [&]<int kVectors>(std::integral_constant<int, kVectors>,
                                                  int64_t panel, int64_t lane) {
    constexpr unsigned kTileSteps = kVectors == kTileVectors ? kSteps : kAnySteps;
    const TileEpilogue<T> e(epilogue, y, panel, lane);
    if (a.columns <= kMaxPrefetchColumns) {
      PrefetchRuns(runs, run_count, panel + kVectors, kVectors);
    }
    const auto* tile = a.begin;
    const auto run = [&]<int kRows>(std::integral_constant<int, kRows>) {
      tile = RunTiles<T, kRows, kVectors, kTileSteps>(a.data, tile, a.end, runs, run_count, panel,
                                                      lane, e);
    };
    while (tile != a.end) WithTileRows<kTileRows>(tile->height, run);
  });
}

// A view of one row; the sums of the padded rows beside it are 0.
template <typename T>
void RunOneRow(const PackedTiles<T>& a, const Run<T>* runs, int64_t run_count, Panels<T> y,
               const Epilogue<T>& epilogue) {
  const auto finish = [&](const typename PackedMatrix<T>::Tile& tile, const T* sums) {
    ForTileColumns<T>(
        1, [&]<int kVectors>(std::integral_constant<int, kVectors>, int64_t panel, int64_t lane) {
          Vec<T> rows[kTileRows * kVectors] = {};
          for (int64_t i = 0; lane == 0 && i < tile.height; ++i) rows[i * kVectors][0] = sums[i];
          FinishRows<T, kVectors>({epilogue, y, panel, lane}, tile.row, tile.height, rows);
        });
  };
  ForTilesOfOneRow(a, 1, runs, run_count, finish);
}

// One or two panels of activations (a few ten KiB) stay in the first-level cache while all tiles of
// the weights pass by them; the weights stream from the second level at four bytes a cycle.
template <typename T>
void RunMatMul(const PackedTiles<T>& a, const Run<T>* runs, int64_t run_count, Panels<T> y,
               const Epilogue<T>& epilogue) {
  if (y.rows == 1) return RunOneRow(a, runs, run_count, y, epilogue);
  const auto run = [&]<unsigned kSteps>(std::integral_constant<unsigned, kSteps>) {
    RunPanels<T, kSteps>(a, runs, run_count, y, epilogue);
  };
  switch (a.columns > kReductionBlock ? kAnySteps : StepsOf(epilogue)) {
    case 0:
      return run(std::integral_constant<unsigned, 0>());
    case kBias:
      return run(std::integral_constant<unsigned, kBias>());
    case kResidual:
      return run(std::integral_constant<unsigned, kResidual>());
    case kBias | kResidual:
      return run(std::integral_constant<unsigned, kBias | kResidual>());
    case kMultiplier | kSecond:
      return run(std::integral_constant<unsigned, kMultiplier | kSecond>());
    default:
      return run(std::integral_constant<unsigned, kAnySteps>());
  }
}

}  // namespace

template <typename T>
constinit MatMulKernel<T>* const IsaKernels<T>::matmul = RunMatMul<T>;
ELASTOR_INSTANTIATE_KERNELS(matmul)

}  // namespace ELASTOR_ISA
}  // namespace elastor
