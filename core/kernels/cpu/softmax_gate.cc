#include "core/kernels/softmax_gate.h"

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/vec_math.h"

namespace elastor {
namespace {

// Calls body(at) for every vector of rows; at(view, feature) is where its rows of a feature lie.
template <typename T, typename Body>
void ForEachVector(Panels<T> view, const Body& body) {
  for (int64_t panel = 0; panel < view.panels(); ++panel) {
    for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
      body([&](const auto& of, int64_t feature) {
        return of.Panel(panel) + feature * of.feature_stride + lane;
      });
    }
  }
}

}  // namespace

template <typename T>
void SoftmaxGate(int64_t tokens, int64_t width, Panels<const T> x, Panels<const T> scores,
                 Panels<T> shares, Panels<T> y) {
  CHECK(x.features == tokens * width && y.features == x.features);
  CHECK(scores.features == tokens && shares.features == tokens);
  ForEachVector(y, [&](const auto& at) {
    Vec<T> most = Load(at(scores, 0));
    for (int64_t t = 1; t < tokens; ++t) most = AtLeast(Load(at(scores, t)), most);
    Vec<T> sum = {};
    for (int64_t t = 0; t < tokens; ++t) {
      const Vec<T> power = Exp(Load(at(scores, t)) - most);
      sum += power;
      Save(at(shares, t), power);
    }
    for (int64_t t = 0; t < tokens; ++t) {
      const Vec<T> share = Load(at(shares, t)) / sum;
      Save(at(shares, t), share);
      for (int64_t f = t * width; f < (t + 1) * width; ++f) {
        Save(at(y, f), share * Load(at(x, f)));
      }
    }
  });
}

template <typename T>
void SoftmaxGateBackward(int64_t tokens, int64_t width, Panels<const T> x, Panels<const T> shares,
                         Panels<const T> dy, Panels<T> dx, Panels<T> dscores) {
  CHECK(x.features == tokens * width && dy.features == x.features && dx.features == x.features);
  CHECK(shares.features == tokens && dscores.features == tokens);
  ForEachVector(dx, [&](const auto& at) {
    Vec<T> mean = {};
    for (int64_t t = 0; t < tokens; ++t) {
      const Vec<T> share = Load(at(shares, t));
      Vec<T> product = {};
      for (int64_t f = t * width; f < (t + 1) * width; ++f) {
        const Vec<T> gradient = Load(at(dy, f));
        product = Fma(gradient, Load(at(x, f)), product);
        Save(at(dx, f), share * gradient);
      }
      mean = Fma(share, product, mean);
      Save(at(dscores, t), product);
    }
    for (int64_t t = 0; t < tokens; ++t) {
      Save(at(dscores, t), Load(at(shares, t)) * (Load(at(dscores, t)) - mean));
    }
  });
}

ELASTOR_INSTANTIATE(SoftmaxGate, float, double)
ELASTOR_INSTANTIATE(SoftmaxGateBackward, float, double)

}  // namespace elastor
