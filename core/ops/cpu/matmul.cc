#include "core/ops/matmul.h"

#include <span>

#include "core/ops/cpu/activate.h"
#include "core/ops/cpu/microkernel.h"
#include "core/ops/cpu/vec.h"
#include "glog/logging.h"

namespace elastor {
namespace {

// The epilogue's views at one panel.
template <typename T>
struct PanelEpilogue {
  const T* bias;
  Activation activation;
  PanelLines<T> derivative;
  PanelLines<T> unscaled;
  PanelLines<const T> multiplier;
  PanelLines<const T> residual;
  PanelLines<T> second_output;
  PanelLines<const T> second_multiplier;
  PanelLines<T> y;

  PanelEpilogue(const Epilogue<T>& e, Panels<T> output, int64_t panel, int64_t lane)
      : bias(e.bias),
        activation(e.activation),
        derivative(e.derivative, panel, lane),
        unscaled(e.unscaled, panel, lane),
        multiplier(e.multiplier, panel, lane),
        residual(e.residual, panel, lane),
        second_output(e.second_output, panel, lane),
        second_multiplier(e.second_multiplier, panel, lane),
        y(output, panel, lane) {}

  bool activates() const { return activation != Activation::kIdentity || derivative; }
};

template <typename T, int kRows>
void ActivateTile(const PanelEpilogue<T>& e, int64_t row, Tile<T, kRows>& s) {
  WithActivation(e.activation, [&](auto function) {
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kTileVectors; ++v) {
        const ValueAndSlope<Vec<T>> result = function(s.v[i][v]);
        if (e.derivative) Save(e.derivative.At(row + i, v), result.slope);
        s.v[i][v] = result.value;
      }
    }
  });
}

// Applies step(sum, row, vector) to every vector of a tile.
template <typename T, int kRows, typename Step>
[[gnu::always_inline]] inline void ForEach(Tile<T, kRows>& s, Step step) {
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    step(s.v[i][0], i, 0);
    step(s.v[i][1], i, 1);
  }
}

template <typename T, int kRows>
[[gnu::always_inline]] inline void FinishTile(const PanelEpilogue<T>& e, int64_t row,
                                              Tile<T, kRows>& s) {
  if (e.bias != nullptr) {
    ForEach(s, [&](Vec<T>& sum, int i, int) { sum += Broadcast(e.bias[row + i]); });
  }
  if (e.activates()) [[unlikely]] {
    Tile<T, kRows> in_memory = s;
    ActivateTile(e, row, in_memory);
    s = in_memory;
  }
  if (e.unscaled) {
    ForEach(s, [&](Vec<T>& sum, int i, int v) { Save(e.unscaled.At(row + i, v), sum); });
  }
  if (e.second_output) {
    // Read before anything is written: second_multiplier or multiplier may be y's memory.
    ForEach(s, [&](Vec<T>& sum, int i, int v) {
      const Vec<T> second = sum * Load(e.second_multiplier.At(row + i, v));
      if (e.multiplier) sum *= Load(e.multiplier.At(row + i, v));
      if (e.residual) sum += Load(e.residual.At(row + i, v));
      Save(e.second_output.At(row + i, v), second);
      Save(e.y.At(row + i, v), sum);
    });
    return;
  }
  if (e.multiplier) {
    ForEach(s, [&](Vec<T>& sum, int i, int v) { sum *= Load(e.multiplier.At(row + i, v)); });
  }
  if (e.residual) {
    ForEach(s, [&](Vec<T>& sum, int i, int v) { sum += Load(e.residual.At(row + i, v)); });
  }
  ForEach(s, [&](Vec<T>& sum, int i, int v) { Save(e.y.At(row + i, v), sum); });
}

template <typename T, int kRows>
void RunTile(const PackedMatrix<T>& a, const typename PackedMatrix<T>::Tile& tile,
             std::span<const Run<T>> runs, int64_t panel, int64_t lane,
             const PanelEpilogue<T>& epilogue) {
  Tile<T, kRows> sum = Products<T, kRows>(a.data() + tile.offset, runs, panel, lane);
  FinishTile<T, kRows>(epilogue, tile.row, sum);
}

template <typename T>
void CheckShapes(const PackedMatrix<T>& a, std::span<const Panels<const T>> x, Panels<T> y,
                 const Epilogue<T>& e) {
  int64_t features = 0;
  for (const Panels<const T>& segment : x) {
    CHECK_EQ(segment.rows, y.rows);
    features += segment.features;
  }
  CHECK(!a.paired());
  CHECK_EQ(features, a.columns());
  CHECK_EQ(y.features, a.rows());
  for (const Panels<const T>& view :
       {Panels<const T>(e.derivative), Panels<const T>(e.unscaled), e.multiplier, e.residual,
        Panels<const T>(e.second_output), e.second_multiplier}) {
    if (view.data == nullptr) continue;
    CHECK_EQ(view.rows, y.rows);
    CHECK_EQ(view.features, y.features);
  }
  CHECK_EQ(e.second_output.data == nullptr, e.second_multiplier.data == nullptr);
}

}  // namespace

// A panel of activations (a few ten KiB) stays in the first-level cache while all tiles of the
// weights pass by it; the weights stream from the second level at about four bytes a cycle.
template <typename T>
void MatMul(const PackedMatrix<T>& a, std::span<const Panels<const T>> x, Panels<T> y,
            const Epilogue<T>& epilogue) {
  CheckShapes(a, x, y, epilogue);
  const std::span<const Run<T>> runs = CutIntoRuns(x);
  for (int64_t panel = 0; panel < y.panels(); ++panel) {
    for (int64_t lane = 0; lane < kPanelRows; lane += kTileLanes<T>) {
      const PanelEpilogue<T> e(epilogue, y, panel, lane);
      for (const typename PackedMatrix<T>::Tile& tile : a.tiles()) {
        switch (tile.height) {
          case 6:
            RunTile<T, 6>(a, tile, runs, panel, lane, e);
            break;
          case 5:
            RunTile<T, 5>(a, tile, runs, panel, lane, e);
            break;
          case 4:
            RunTile<T, 4>(a, tile, runs, panel, lane, e);
            break;
          case 3:
            RunTile<T, 3>(a, tile, runs, panel, lane, e);
            break;
          case 2:
            RunTile<T, 2>(a, tile, runs, panel, lane, e);
            break;
          default:
            RunTile<T, 1>(a, tile, runs, panel, lane, e);
            break;
        }
      }
    }
  }
}

template void MatMul<float>(const PackedMatrix<float>&, std::span<const Panels<const float>>,
                            Panels<float>, const Epilogue<float>&);
template void MatMul<double>(const PackedMatrix<double>&, std::span<const Panels<const double>>,
                             Panels<double>, const Epilogue<double>&);

}  // namespace elastor
