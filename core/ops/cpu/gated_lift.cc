#include <span>

#include "core/ops/cpu/activate.h"
#include "core/ops/cpu/microkernel.h"
#include "core/ops/matmul.h"
#include "glog/logging.h"

namespace elastor {
namespace {

template <typename T>
struct PanelOutputs {
  PanelLines<T> h;
  PanelLines<T> first_factor;
  PanelLines<T> second_factor;
};

// `function` gives value and slope of the activation. The tile holds kRows rows of p, then of q.
template <typename T, int kRows, typename Function>
[[gnu::always_inline]] inline void FinishPair(const Tile<T, 2 * kRows>& s, const T* bias1,
                                              const T* bias2, int64_t row,
                                              const PanelOutputs<T>& out, Function function) {
  for (int i = 0; i < kRows; ++i) {
    const Vec<T> first_bias = bias1 == nullptr ? Vec<T>{} : Broadcast(bias1[row + i]);
    const Vec<T> second_bias = bias2 == nullptr ? Vec<T>{} : Broadcast(bias2[row + i]);
    for (int v = 0; v < kTileVectors; ++v) {
      const Vec<T> p = bias1 == nullptr ? s.v[i][v] : s.v[i][v] + first_bias;
      const Vec<T> q = bias2 == nullptr ? s.v[kRows + i][v] : s.v[kRows + i][v] + second_bias;
      const ValueAndSlope<Vec<T>> act = function(p);
      Save(out.h.At(row + i, v), act.value * q);
      if (out.first_factor) Save(out.first_factor.At(row + i, v), q * act.slope);
      if (out.second_factor) Save(out.second_factor.At(row + i, v), act.value);
    }
  }
}

template <typename T>
void CheckShapes(const PackedMatrix<T>& w, Panels<const T> x, Panels<T> h, Panels<T> first_factor,
                 Panels<T> second_factor) {
  CHECK(w.paired());
  CHECK_EQ(x.features, w.columns());
  for (const Panels<T>& view : {h, first_factor, second_factor}) {
    if (view.data == nullptr) continue;
    CHECK_EQ(view.rows, x.rows);
    CHECK_EQ(view.features, w.rows());
  }
}

}  // namespace

template <typename T>
void GatedLift(const PackedMatrix<T>& w, Panels<const T> x, const T* bias1, const T* bias2,
               Activation activation, Panels<T> h, Panels<T> first_factor,
               Panels<T> second_factor) {
  CheckShapes(w, x, h, first_factor, second_factor);
  const std::span<const Run<T>> runs = CutIntoRuns<T>({&x, 1});
  WithActivation(activation, [&](auto function) {
    for (int64_t panel = 0; panel < x.panels(); ++panel) {
      for (int64_t lane = 0; lane < kPanelRows; lane += kTileLanes<T>) {
        const PanelOutputs<T> out = {
            {h, panel, lane}, {first_factor, panel, lane}, {second_factor, panel, lane}};
        for (const typename PackedMatrix<T>::Tile& tile : w.tiles()) {
          const auto run_tile = [&]<int kRows>(std::integral_constant<int, kRows>) {
            const Tile<T, 2 * kRows> s =
                Products<T, 2 * kRows>(w.data() + tile.offset, runs, panel, lane);
            FinishPair<T, kRows>(s, bias1, bias2, tile.row, out, function);
          };
          switch (tile.height) {
            case 3:
              run_tile(std::integral_constant<int, 3>());
              break;
            case 2:
              run_tile(std::integral_constant<int, 2>());
              break;
            default:
              run_tile(std::integral_constant<int, 1>());
              break;
          }
        }
      }
    }
  });
}

template void GatedLift<float>(const PackedMatrix<float>&, Panels<const float>, const float*,
                               const float*, Activation, Panels<float>, Panels<float>,
                               Panels<float>);
template void GatedLift<double>(const PackedMatrix<double>&, Panels<const double>, const double*,
                                const double*, Activation, Panels<double>, Panels<double>,
                                Panels<double>);

}  // namespace elastor
