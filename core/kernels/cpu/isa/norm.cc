#include "core/kernels/cpu/chains.h"
#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/vec.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// Vectors of rows that are normalised side by side: alone, one would wait for its sums. Going back
// they would need more registers for addresses than there are.
inline constexpr int64_t kSideBySide = 2;

// One group's features for kCount successive vectors of rows, the first of which begins a panel
// or, with the next one, lies within it.
template <typename T, int64_t kCount>
struct Lines {
  T* data;
  int64_t feature_stride;
  int64_t vector_stride;

  ELASTOR_INLINE Lines(Panels<T> view, int64_t vector, int64_t feature)
      : data(view.data == nullptr ? nullptr : Line(view, vector, feature)),
        feature_stride(view.feature_stride),
        vector_stride(kVectorsPerPanel<T> == 1 ? view.panel_stride : kLanes<T>) {}
  ELASTOR_INLINE T* At(int64_t feature, int64_t vector) const {
    return data + feature * feature_stride + vector * vector_stride;
  }
};

template <typename T, int64_t kCount>
struct Vectors {
  Vec<T> v[kCount] = {};
};

// Sums of term(f, vector) over f in [0, width) for every vector: four interleaved chains, chain c
// over c, c + 4, ..., combined (s0 + s2) + (s1 + s3). add(f, vector, sum) adds a term to a chain.
template <typename T, int64_t kCount, typename Add>
ELASTOR_INLINE Vectors<T, kCount> SumOverFeatures(int64_t width, Add add) {
  Vec<T> sum[4][kCount] = {};
  const auto add_to = [&](int chain, int64_t f) [[gnu::always_inline]] {
    for (int64_t i = 0; i < kCount; ++i) add(f, i, sum[chain][i]);
  };
  int64_t f = 0;
  for (; f + 4 <= width; f += 4) {
    add_to(0, f);
    add_to(1, f + 1);
    add_to(2, f + 2);
    add_to(3, f + 3);
  }
  if (f < width) add_to(0, f);
  if (f + 1 < width) add_to(1, f + 1);
  if (f + 2 < width) add_to(2, f + 2);
  Vectors<T, kCount> total;
  for (int64_t i = 0; i < kCount; ++i) {
    total.v[i] = (sum[0][i] + sum[2][i]) + (sum[1][i] + sum[3][i]);
  }
  return total;
}

template <typename T, int64_t kCount>
ELASTOR_INLINE void ForwardLines(const NormShape& shape, Lines<const T, kCount> x, const T* gain,
                                 const T* bias, Lines<T, kCount> y, Lines<T, kCount> normalized,
                                 Lines<T, kCount> saved_scale) {
  using V = Vec<T>;
  const int64_t width = shape.width;
  const V inverse_width = Broadcast(T(1) / static_cast<T>(width));
  const V epsilon = Broadcast(static_cast<T>(shape.epsilon));
  Vectors<T, kCount> mean;
  if (shape.kind == NormKind::kLayer) {
    mean = SumOverFeatures<T, kCount>(
        width, [&](int64_t f, int64_t i, V& s) [[gnu::always_inline]] { s += Load(x.At(f, i)); });
    for (V& m : mean.v) m *= inverse_width;
  }
  const Vectors<T, kCount> square_sum =
      SumOverFeatures<T, kCount>(width, [&](int64_t f, int64_t i, V& s) [[gnu::always_inline]] {
        const V centred = Load(x.At(f, i)) - mean.v[i];
        s = Fma(centred, centred, s);
      });
  Vectors<T, kCount> scale;
  for (int64_t i = 0; i < kCount; ++i) {
    scale.v[i] = Broadcast(T(1)) / Sqrt(Fma(square_sum.v[i], inverse_width, epsilon));
    Save(saved_scale.At(0, i), scale.v[i]);
  }
  const auto normalize = [&](int64_t f, int64_t i) [[gnu::always_inline]] {
    const V n = (Load(x.At(f, i)) - mean.v[i]) * scale.v[i];
    Save(normalized.At(f, i), n);
    return n;
  };
  if (bias == nullptr) {
    for (int64_t f = 0; f < width; ++f) {
      for (int64_t i = 0; i < kCount; ++i) Save(y.At(f, i), normalize(f, i) * Broadcast(gain[f]));
    }
  } else {
    for (int64_t f = 0; f < width; ++f) {
      for (int64_t i = 0; i < kCount; ++i) {
        Save(y.At(f, i), Fma(normalize(f, i), Broadcast(gain[f]), Broadcast(bias[f])));
      }
    }
  }
}

// dx of one group.
template <typename T>
ELASTOR_INLINE void BackwardLines(NormKind kind, int64_t width, Lines<const T, 1> normalized,
                                  Vec<T> scale, const T* gain, Lines<const T, 1> dy,
                                  Lines<const T, 1> residual, Lines<T, 1> dx) {
  using V = Vec<T>;
  const V inverse_width = Broadcast(T(1) / static_cast<T>(width));
  const auto scaled_dy = [&](int64_t f) [[gnu::always_inline]] {
    return Load(dy.At(f, 0)) * Broadcast(gain[f]);
  };
  V along;
  V mean = {};
  if (kind == NormKind::kLayer) {
    // The two sums in one go.
    const Vectors<T, 2> sums =
        SumOverFeatures<T, 2>(width, [&](int64_t f, int64_t i, V& s) [[gnu::always_inline]] {
          s = i == 0 ? Fma(scaled_dy(f), Load(normalized.At(f, 0)), s) : s + scaled_dy(f);
        });
    along = sums.v[0] * inverse_width;
    mean = sums.v[1] * inverse_width;
  } else {
    along = SumOverFeatures<T, 1>(width,
                                  [&](int64_t f, int64_t, V& s) [[gnu::always_inline]] {
                                    s = Fma(scaled_dy(f), Load(normalized.At(f, 0)), s);
                                  })
                .v[0] *
            inverse_width;
  }
  const auto result = [&](int64_t f) [[gnu::always_inline]] {
    return NegativeFma(Load(normalized.At(f, 0)), along, scaled_dy(f) - mean) * scale;
  };
  if (residual.data == nullptr) {
    for (int64_t f = 0; f < width; ++f) Save(dx.At(f, 0), result(f));
  } else {
    for (int64_t f = 0; f < width; ++f) {
      Save(dx.At(f, 0), result(f) + Load(residual.At(f, 0)));
    }
  }
}

// What one panel adds to the chains of dgain and dbias of one group, kChains elements a feature.
// `feature` is the group's first.
template <typename T>
void AddToChains(int64_t width, Panels<const T> normalized, Panels<const T> dy, int64_t panel,
                 int64_t feature, T* dgain, T* dbias) {
  const T* d_line = dy.Panel(panel) + feature * dy.feature_stride;
  const T* n_line = normalized.Panel(panel) + feature * normalized.feature_stride;
  for (int64_t f = 0; f < width; f += kChainFeatures<T>) {
    // A missing last feature is the one before it again.
    const int64_t next = f + 1 < width ? 1 : 0;
    Chains<T> gain_chains = LoadWholeChains(dgain + f * kChains);
    Chains<T> bias_chains = LoadWholeChains(dbias + f * kChains);
    for (int step = 0; step < kChainSteps; ++step) {
      Chains<T> d = LoadChains(d_line + step * kChains, next * dy.feature_stride);
      KeepInRegister(d);
      FmaChains(d, LoadChains(n_line + step * kChains, next * normalized.feature_stride),
                gain_chains);
      AddChains(d, bias_chains);
    }
    SaveChains(gain_chains, dgain + f * kChains);
    SaveChains(bias_chains, dbias + f * kChains);
    d_line += kChainFeatures<T> * dy.feature_stride;
    n_line += kChainFeatures<T> * normalized.feature_stride;
  }
}

// sums[f] (+)= the combined chains of feature f. Reads kSums * kChains elements at a time.
template <typename T>
void CombineGroup(int64_t width, const T* chains, bool first_group, T* sums) {
  for (int64_t f = 0; f < width; f += kSums<T>) {
    Chains<T> eight[8];
    for (int i = 0; i < 8; ++i) {
      eight[i] = LoadWholeChains(chains + (f + i * kChainFeatures<T>)*kChains);
    }
    SaveSums(CombineChains(eight), Least(kSums<T>, width - f),
             first_group ? Store::kOverwrite : Store::kAdd, sums + f);
  }
}

template <typename T>
void Deliver(int64_t width, const T* sums, Store store, T* out) {
  for (int64_t i = 0; i < width; ++i) out[i] = store == Store::kAdd ? out[i] + sums[i] : sums[i];
}

// All groups of kCount successive vectors of rows.
template <typename T, int64_t kCount>
void ForwardVectors(const NormShape& shape, int64_t vector, Panels<const T> x, const T* gain,
                    const T* bias, Panels<T> y, Panels<T> saved_normalized, Panels<T> saved_scale) {
  for (int64_t group = 0; group < saved_scale.features; ++group) {
    const int64_t feature = group * shape.width;
    ForwardLines<T, kCount>(shape, {x, vector, feature}, gain, bias, {y, vector, feature},
                            {saved_normalized, vector, feature}, {saved_scale, vector, group});
  }
}

template <typename T>
void Forward(const NormShape& shape, Panels<const T> x, const T* gain, const T* bias, Panels<T> y,
             Panels<T> saved_normalized, Panels<T> saved_scale) {
  const int64_t vectors = x.panels() * kVectorsPerPanel<T>;
  int64_t vector = 0;
  for (; vector + kSideBySide <= vectors; vector += kSideBySide) {
    ForwardVectors<T, kSideBySide>(shape, vector, x, gain, bias, y, saved_normalized, saved_scale);
  }
  if (vector < vectors) {
    ForwardVectors<T, 1>(shape, vector, x, gain, bias, y, saved_normalized, saved_scale);
  }
}

template <typename T>
void Backward(const NormShape& shape, Panels<const T> saved_normalized, Panels<const T> saved_scale,
              const T* gain, Panels<const T> dy, Panels<const T> residual, Panels<T> dx, T* dgain,
              T* dbias, Store store, T* scratch) {
  const int64_t width = shape.width;
  const int64_t padded_width = NormScratchWidth(width);
  T* const gain_chains = scratch;
  T* const bias_chains = gain_chains + kChains * padded_width;
  T* const gain_sums = bias_chains + kChains * padded_width;
  T* const bias_sums = gain_sums + padded_width;
  for (int64_t group = 0; group < saved_scale.features; ++group) {
    const int64_t feature = group * width;
    for (int64_t i = 0; i < 2 * kChains * padded_width; ++i) scratch[i] = 0;
    for (int64_t panel = 0; panel < dy.panels(); ++panel) {
      // Before dx is written, which may be dy's memory.
      AddToChains(width, saved_normalized, dy, panel, feature, gain_chains, bias_chains);
      for (int64_t i = 0; i < kVectorsPerPanel<T>; ++i) {
        const int64_t vector = panel * kVectorsPerPanel<T> + i;
        BackwardLines<T>(shape.kind, width, {saved_normalized, vector, feature},
                         Load(Line(saved_scale, vector, group)), gain, {dy, vector, feature},
                         {residual, vector, feature}, {dx, vector, feature});
      }
    }
    CombineGroup(width, gain_chains, group == 0, gain_sums);
    CombineGroup(width, bias_chains, group == 0, bias_sums);
  }
  Deliver(width, gain_sums, store, dgain);
  if (dbias != nullptr) Deliver(width, bias_sums, store, dbias);
}

}  // namespace

template <typename T>
constinit const NormKernels<T> IsaKernels<T>::norm = {.forward = Forward<T>,
                                                      .backward = Backward<T>};
ELASTOR_INSTANTIATE_KERNELS(norm)

}  // namespace ELASTOR_ISA
}  // namespace elastor
