#include "core/kernels/mixture.h"

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/vec_math.h"

namespace elastor {
namespace {

template <typename T>
void CheckShapes(const MixtureShape& shape, Panels<const T> x, Panels<const T> gates,
                 Panels<const T> y) {
  CHECK_EQ(x.features, shape.experts * shape.width);
  CHECK_EQ(gates.features, shape.mixtures * shape.experts);
  CHECK_EQ(y.features, shape.mixtures * shape.width);
  CHECK(x.rows == gates.rows && x.rows == y.rows);
}

// Calls body(at) for every run of samples; at(view, feature) is the feature of these samples.
template <typename T, typename Body>
[[gnu::always_inline]] inline void ForEachRun(int64_t panels, Body body) {
  for (int64_t panel = 0; panel < panels; ++panel) {
    for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
      body([&](auto view, int64_t feature) {
        return view.Panel(panel) + feature * view.feature_stride + lane;
      });
    }
  }
}

// first(0) * second(0), then FMAs.
template <typename First, typename Second>
[[gnu::always_inline]] inline auto SumOfProducts(int64_t count, First first, Second second) {
  auto sum = first(0) * second(0);
  for (int64_t i = 1; i < count; ++i) sum = Fma(first(i), second(i), sum);
  return sum;
}

}  // namespace

template <typename T>
void Mixture(const MixtureShape& shape, Panels<const T> x, Panels<const T> gates, Panels<T> p,
             Panels<T> y) {
  CheckShapes<T>(shape, x, gates, y);
  const auto [experts, width, mixtures] = shape;
  ForEachRun<T>(x.panels(), [&, experts = experts, width = width, mixtures = mixtures](auto at) {
    for (int64_t t = 0; t < mixtures; ++t) {
      const int64_t first = t * experts;
      Vec<T> largest = Load(at(gates, first));
      for (int64_t i = 1; i < experts; ++i) {
        largest = AtLeast(largest, Load(at(gates, first + i)));
      }
      Vec<T> sum = {};
      for (int64_t i = 0; i < experts; ++i) {
        const Vec<T> power = Exp(Load(at(gates, first + i)) - largest);
        Save(at(p, first + i), power);
        sum += power;
      }
      for (int64_t i = 0; i < experts; ++i) {
        Save(at(p, first + i), Load(at(p, first + i)) / sum);
      }
      for (int64_t d = 0; d < width; ++d) {
        Save(at(y, t * width + d), SumOfProducts(
                                       experts, [&](int64_t i) { return Load(at(p, first + i)); },
                                       [&](int64_t i) { return Load(at(x, i * width + d)); }));
      }
    }
  });
}

template <typename T>
void MixtureBackward(const MixtureShape& shape, Panels<const T> x, Panels<const T> p,
                     Panels<const T> dy, Panels<T> dx, Panels<T> dgates) {
  CheckShapes<T>(shape, x, p, dy);
  const auto [experts, width, mixtures] = shape;
  ForEachRun<T>(x.panels(), [&, experts = experts, width = width, mixtures = mixtures](auto at) {
    for (int64_t t = 0; t < mixtures; ++t) {
      const int64_t first = t * experts;
      const auto weight = [&](int64_t i) { return Load(at(p, first + i)); };
      for (int64_t i = 0; i < experts; ++i) {
        Save(at(dgates, first + i),
             SumOfProducts(
                 width, [&](int64_t d) { return Load(at(dy, t * width + d)); },
                 [&](int64_t d) { return Load(at(x, i * width + d)); }));
      }
      const Vec<T> mean =
          SumOfProducts(experts, weight, [&](int64_t i) { return Load(at(dgates, first + i)); });
      for (int64_t i = 0; i < experts; ++i) {
        Save(at(dgates, first + i), weight(i) * (Load(at(dgates, first + i)) - mean));
      }
    }
    for (int64_t i = 0; i < experts; ++i) {
      for (int64_t d = 0; d < width; ++d) {
        Save(at(dx, i * width + d),
             SumOfProducts(
                 mixtures, [&](int64_t t) { return Load(at(p, t * experts + i)); },
                 [&](int64_t t) { return Load(at(dy, t * width + d)); }));
      }
    }
  });
}

ELASTOR_INSTANTIATE(Mixture, float, double)
ELASTOR_INSTANTIATE(MixtureBackward, float, double)

}  // namespace elastor
