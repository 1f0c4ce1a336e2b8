#include "core/kernels/norm.h"

#include <algorithm>
#include <vector>

#include "core/kernels/cpu/chains.h"
#include "core/kernels/cpu/vec.h"
#include "glog/logging.h"

namespace elastor {
namespace {

// Half a panel of floats, a quarter of doubles: the rows one vector holds.
template <typename T>
inline constexpr int64_t kVectorsPerPanel = kPanelRows / kLanes<T>;

// Sum of term(f) over f in [0, width): four interleaved chains, chain c over c, c + 4, ...,
// combined (s0 + s2) + (s1 + s3). add(f, sum) adds the term of f to a chain.
template <typename V, typename Add>
[[gnu::always_inline]] inline V SumOverFeatures(int64_t width, Add add) {
  V sum[4] = {};
  int64_t f = 0;
  for (; f + 4 <= width; f += 4) {
    add(f, sum[0]);
    add(f + 1, sum[1]);
    add(f + 2, sum[2]);
    add(f + 3, sum[3]);
  }
  if (f < width) add(f, sum[0]);
  if (f + 1 < width) add(f + 1, sum[1]);
  if (f + 2 < width) add(f + 2, sum[2]);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// What one vector of rows of one group sees: element f of view v is at Line(v)[f * stride].
template <typename T>
T* Line(Panels<T> view, int64_t panel, int64_t vector, int64_t feature) {
  return view.Panel(panel) + feature * view.feature_stride + vector * kLanes<T>;
}

template <typename T>
int64_t CheckedGroups(const NormShape& shape, Panels<const T> x, Panels<const T> normalized,
                      Panels<const T> scale) {
  CHECK_GT(shape.width, 0);
  CHECK_EQ(x.features % shape.width, 0);
  const int64_t groups = x.features / shape.width;
  CHECK_EQ(normalized.features, x.features);
  CHECK_EQ(scale.features, groups);
  CHECK_EQ(normalized.rows, x.rows);
  CHECK_EQ(scale.rows, x.rows);
  return groups;
}

}  // namespace

template <typename T>
void NormForward(const NormShape& shape, Panels<const T> x, const T* gain, const T* bias,
                 Panels<T> y, Panels<T> saved_normalized, Panels<T> saved_scale) {
  using V = Vec<T>;
  const int64_t groups = CheckedGroups<T>(shape, x, saved_normalized, saved_scale);
  CHECK_EQ(y.features, x.features);
  const int64_t width = shape.width;
  const V inverse_width = Broadcast(T(1) / static_cast<T>(width));
  const V epsilon = Broadcast(static_cast<T>(shape.epsilon));
  for (int64_t panel = 0; panel < x.panels(); ++panel) {
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t vector = 0; vector < kVectorsPerPanel<T>; ++vector) {
        const T* in = Line(x, panel, vector, group * width);
        T* normalized = Line(saved_normalized, panel, vector, group * width);
        T* out = Line(y, panel, vector, group * width);
        V mean = {};
        if (shape.kind == NormKind::kLayer) {
          const V sum = SumOverFeatures<V>(
              width, [&](int64_t f, V& s) { s += Load(in + f * x.feature_stride); });
          mean = sum * inverse_width;
        }
        const V square_sum = SumOverFeatures<V>(width, [&](int64_t f, V& s) {
          const V centred = Load(in + f * x.feature_stride) - mean;
          s = Fma(centred, centred, s);
        });
        const V scale = Broadcast(T(1)) / Sqrt(Fma(square_sum, inverse_width, epsilon));
        Save(Line(saved_scale, panel, vector, group), scale);
        for (int64_t f = 0; f < width; ++f) {
          const V n = (Load(in + f * x.feature_stride) - mean) * scale;
          Save(normalized + f * saved_normalized.feature_stride, n);
          const V result = bias == nullptr ? n * Broadcast(gain[f])
                                           : Fma(n, Broadcast(gain[f]), Broadcast(bias[f]));
          Save(out + f * y.feature_stride, result);
        }
      }
    }
  }
}

namespace {

// dx of one vector of rows of one group.
template <typename T>
void BackwardRows(NormKind kind, int64_t width, Panels<const T> normalized, Vec<T> scale,
                  const T* gain, Panels<const T> dy, Panels<const T> residual, Panels<T> dx) {
  using V = Vec<T>;
  const V inverse_width = Broadcast(T(1) / static_cast<T>(width));
  const auto scaled_dy = [&](int64_t f) {
    return Load(dy.data + f * dy.feature_stride) * Broadcast(gain[f]);
  };
  const auto n = [&](int64_t f) { return Load(normalized.data + f * normalized.feature_stride); };
  const V along =
      SumOverFeatures<V>(width, [&](int64_t f, V& s) { s = Fma(scaled_dy(f), n(f), s); }) *
      inverse_width;
  V mean = {};
  if (kind == NormKind::kLayer) {
    mean = SumOverFeatures<V>(width, [&](int64_t f, V& s) { s += scaled_dy(f); }) * inverse_width;
  }
  for (int64_t f = 0; f < width; ++f) {
    V result = NegativeFma(n(f), along, scaled_dy(f) - mean) * scale;
    if (residual.data != nullptr) result += Load(residual.data + f * residual.feature_stride);
    Save(dx.data + f * dx.feature_stride, result);
  }
}

// The view of one panel that starts at a vector of rows of a group.
template <typename P>
P At(P view, int64_t panel, int64_t vector, int64_t feature) {
  if (view.data != nullptr) view.data = Line(view, panel, vector, feature);
  return view;
}

// One panel's contribution to the chains of dgain and dbias.
template <typename T>
void AddToChains(int64_t width, Panels<const T> normalized, Panels<const T> dy, Chains<T>* dgain,
                 Chains<T>* dbias) {
  for (int64_t f = 0; f < width; ++f) {
    for (int step = 0; step < kChainSteps; ++step) {
      const Chains<T> d = LoadChains(dy.data + f * dy.feature_stride + step * kChains);
      FmaChains(d, LoadChains(normalized.data + f * normalized.feature_stride + step * kChains),
                dgain[f]);
      if (dbias != nullptr) AddChains(d, dbias[f]);
    }
  }
}

// The gradient of gain or bias on its way: chains of one group, sums over the groups before.
// Empty when there is no such parameter.
template <typename T>
struct Scratch {
  std::vector<Chains<T>> chains;
  std::vector<T> sums;

  void Resize(int64_t width) {
    chains.resize(width);
    sums.resize(width);
  }
  void ClearChains() { std::fill(chains.begin(), chains.end(), Chains<T>{}); }
  void CombineGroup(bool first_group) {
    for (size_t begin = 0; begin < chains.size(); begin += 8) {
      const size_t count = std::min<size_t>(8, chains.size() - begin);
      Chains<T> eight[8] = {};
      std::copy_n(chains.begin() + begin, count, eight);
      T combined[8];
      CombineChains(eight, combined);
      for (size_t i = 0; i < count; ++i) {
        sums[begin + i] = first_group ? combined[i] : sums[begin + i] + combined[i];
      }
    }
  }
  void Deliver(Store store, T* out) const {
    for (size_t i = 0; i < sums.size(); ++i) {
      out[i] = store == Store::kAdd ? out[i] + sums[i] : sums[i];
    }
  }
};

}  // namespace

template <typename T>
void NormBackward(const NormShape& shape, Panels<const T> saved_normalized,
                  Panels<const T> saved_scale, const T* gain, Panels<const T> dy,
                  Panels<const T> residual, Panels<T> dx, T* dgain, T* dbias, Store store) {
  const int64_t groups = CheckedGroups<T>(shape, dy, saved_normalized, saved_scale);
  CHECK_EQ(dx.features, dy.features);
  const int64_t width = shape.width;
  thread_local Scratch<T> gain_scratch;
  thread_local Scratch<T> bias_scratch;
  gain_scratch.Resize(width);
  bias_scratch.Resize(dbias == nullptr ? 0 : width);
  for (int64_t group = 0; group < groups; ++group) {
    gain_scratch.ClearChains();
    bias_scratch.ClearChains();
    for (int64_t panel = 0; panel < dy.panels(); ++panel) {
      // Before dx is written, which may be dy's memory.
      AddToChains(width, At(saved_normalized, panel, 0, group * width),
                  At(dy, panel, 0, group * width), gain_scratch.chains.data(),
                  dbias == nullptr ? nullptr : bias_scratch.chains.data());
      for (int64_t vector = 0; vector < kVectorsPerPanel<T>; ++vector) {
        BackwardRows<T>(shape.kind, width, At(saved_normalized, panel, vector, group * width),
                        Load(Line(saved_scale, panel, vector, group)), gain,
                        At(dy, panel, vector, group * width),
                        At(residual, panel, vector, group * width),
                        At(dx, panel, vector, group * width));
      }
    }
    gain_scratch.CombineGroup(group == 0);
    bias_scratch.CombineGroup(group == 0);
  }
  gain_scratch.Deliver(store, dgain);
  bias_scratch.Deliver(store, dbias);
}

template void NormForward<float>(const NormShape&, Panels<const float>, const float*, const float*,
                                 Panels<float>, Panels<float>, Panels<float>);
template void NormForward<double>(const NormShape&, Panels<const double>, const double*,
                                  const double*, Panels<double>, Panels<double>, Panels<double>);
template void NormBackward<float>(const NormShape&, Panels<const float>, Panels<const float>,
                                  const float*, Panels<const float>, Panels<const float>,
                                  Panels<float>, float*, float*, Store);
template void NormBackward<double>(const NormShape&, Panels<const double>, Panels<const double>,
                                   const double*, Panels<const double>, Panels<const double>,
                                   Panels<double>, double*, double*, Store);

}  // namespace elastor
