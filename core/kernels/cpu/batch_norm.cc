#include "core/kernels/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/base/canonical_flush.h"
#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
namespace {

constexpr int kQuad = 4;  // rows of one Double4: the chains

// Four rows in double.
inline Double4 LoadQuad(const float* p) { return LoadAsDoubles(p); }
inline Double4 LoadQuad(const double* p) { return Load4(p); }

// v, but +0 in the lanes whose row, first_row + lane, is padding.
template <typename V>
V KeepReal(V v, int64_t first_row, int64_t rows) {
  using Number = std::remove_cvref_t<decltype(v[0])>;
  using Integer = std::conditional_t<sizeof(Number) == sizeof(float), int32_t, int64_t>;
  using Integers [[gnu::vector_size(sizeof(V))]] = Integer;
  Integers lanes;
  for (size_t i = 0; i < sizeof(V) / sizeof(Number); ++i) lanes[i] = static_cast<Integer>(i);
  const auto left = static_cast<Integer>(std::min<int64_t>(rows - first_row, kPanelRows));
  return lanes < left ? v : V{};
}

// sums[f] = sum over the real rows: add(panel, feature, lane, keep, chains) adds the terms of four
// rows, from `lane` of the panel, to the chains; keep(v) is v with 0 in the padded rows.
template <typename Add>
void SumOverRows(int64_t rows, int64_t features, std::vector<double>* sums, Add add) {
  thread_local std::vector<Double4> chains;
  chains.assign(features, Double4{});
  for (int64_t panel = 0; panel * kPanelRows < rows; ++panel) {
    for (int64_t lane = 0; lane < kPanelRows; lane += kQuad) {
      const auto keep = [first_row = panel * kPanelRows + lane, rows](Double4 v) {
        return KeepReal(v, first_row, rows);
      };
      for (int64_t f = 0; f < features; ++f) add(panel, f, lane, keep, chains[f]);
    }
  }
  sums->resize(features);
  for (int64_t f = 0; f < features; ++f) {
    (*sums)[f] = (chains[f][0] + chains[f][2]) + (chains[f][1] + chains[f][3]);
  }
}

template <typename T>
auto* Line(Panels<T> view, int64_t panel, int64_t feature, int64_t lane) {
  return view.Panel(panel) + feature * view.feature_stride + lane;
}

template <typename T>
T ScaleOf(double variance, double epsilon) {
  return static_cast<T>(1 / std::sqrt(variance + epsilon));
}

template <typename T>
void Deliver(const std::vector<double>& sums, Store store, T* out) {
  for (size_t f = 0; f < sums.size(); ++f) {
    const T sum = CanonicalCast<T>(sums[f]);
    out[f] = store == Store::kAdd ? out[f] + sum : sum;
  }
}

}  // namespace

template <typename T>
void BatchStatistics(double epsilon, Panels<const T> x, T* mean, T* variance, T* scale) {
  CHECK_GT(x.rows, 0);
  const double rows = static_cast<double>(x.rows);
  thread_local std::vector<double> means;
  thread_local std::vector<double> squares;
  SumOverRows(x.rows, x.features, &means, [&](auto panel, auto f, auto lane, auto keep, auto& sum) {
    sum += keep(LoadQuad(Line(x, panel, f, lane)));
  });
  for (double& value : means) value /= rows;
  SumOverRows(x.rows, x.features, &squares,
              [&](auto panel, auto f, auto lane, auto keep, auto& sum) {
                const Double4 centred = keep(LoadQuad(Line(x, panel, f, lane)) - means[f]);
                sum = Fma(centred, centred, sum);
              });
  for (int64_t f = 0; f < x.features; ++f) {
    mean[f] = CanonicalCast<T>(means[f]);
    variance[f] = CanonicalCast<T>(squares[f] / rows);
    scale[f] = ScaleOf<T>(squares[f] / rows, epsilon);
  }
}

template <typename T>
void BatchNormScale(double epsilon, int64_t features, const T* variance, T* scale) {
  for (int64_t f = 0; f < features; ++f) scale[f] = ScaleOf<T>(variance[f], epsilon);
}

template <typename T>
void BatchNormForward(Panels<const T> x, const T* mean, const T* scale, const T* gain,
                      const T* bias, Panels<T> y) {
  CHECK_EQ(x.rows, y.rows);
  CHECK_EQ(x.features, y.features);
  for (int64_t panel = 0; panel < x.panels(); ++panel) {
    for (int64_t f = 0; f < x.features; ++f) {
      for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
        const Vec<T> n = (Load(Line(x, panel, f, lane)) - Broadcast(mean[f])) * Broadcast(scale[f]);
        Save(Line(y, panel, f, lane), Fma(n, Broadcast(gain[f]), Broadcast(bias[f])));
      }
    }
  }
}

template <typename T>
void BatchNormBackward(Panels<const T> x, const T* mean, const T* scale, const T* gain,
                       Panels<const T> dy, Panels<T> dx, T* dgain, T* dbias, Store store) {
  CHECK_EQ(x.rows, dy.rows);
  CHECK_EQ(x.features, dy.features);
  CHECK_EQ(dx.features, dy.features);
  const double rows = static_cast<double>(x.rows);
  thread_local std::vector<double> sums;
  thread_local std::vector<double> along;
  SumOverRows(x.rows, x.features, &sums, [&](auto panel, auto f, auto lane, auto keep, auto& sum) {
    sum += keep(LoadQuad(Line(dy, panel, f, lane)));
  });
  SumOverRows(x.rows, x.features, &along, [&](auto panel, auto f, auto lane, auto keep, auto& sum) {
    T n[kQuad];
    const T* const from = Line(x, panel, f, lane);
    for (int i = 0; i < kQuad; ++i) n[i] = (from[i] - mean[f]) * scale[f];
    sum = Fma(keep(LoadQuad(Line(dy, panel, f, lane))), LoadQuad(n), sum);
  });
  for (int64_t panel = 0; panel < x.panels(); ++panel) {
    for (int64_t f = 0; f < x.features; ++f) {
      const Vec<T> mean_dy = Broadcast(CanonicalCast<T>(sums[f] / rows));
      const Vec<T> mean_along = Broadcast(CanonicalCast<T>(along[f] / rows));
      const Vec<T> slope = Broadcast(gain[f] * scale[f]);
      for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
        const Vec<T> n = (Load(Line(x, panel, f, lane)) - Broadcast(mean[f])) * Broadcast(scale[f]);
        const Vec<T> d =
            NegativeFma(n, mean_along, Load(Line(dy, panel, f, lane)) - mean_dy) * slope;
        Save(Line(dx, panel, f, lane), KeepReal(d, panel * kPanelRows + lane, x.rows));
      }
    }
  }
  Deliver(along, store, dgain);
  Deliver(sums, store, dbias);
}

ELASTOR_INSTANTIATE(BatchStatistics, float, double)
ELASTOR_INSTANTIATE(BatchNormScale, float, double)
ELASTOR_INSTANTIATE(BatchNormForward, float, double)
ELASTOR_INSTANTIATE(BatchNormBackward, float, double)

}  // namespace elastor
