#include <cmath>

#include "core/base/canonical_flush.h"
#include "core/base/canonical_math.h"
#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

// CanonicalExp of arguments that are 0 or less, in a form that a loop over lanes becomes vectors
// of: results below 2^-1021 are 0.
[[gnu::always_inline]] inline double ExpOfNegative(double x) {
  using namespace canonical_internal;
  constexpr double kSmallest = -707.7, kLog2E = 0x1.71547652b82fep+0, kRounder = 0x1.8p52;
  constexpr auto kExp = InverseFactorials<14>(0, 1, 1);
  const double bounded = x < kSmallest ? kSmallest : x;
  const double rounded = std::fma(bounded, kLog2E, kRounder);
  const double k = rounded - kRounder;
  const double r = std::fma(-k, kLn2Low, std::fma(-k, kLn2High, bounded));
  // The last bits of `rounded` are those of k.
  const double power = std::bit_cast<double>((std::bit_cast<uint64_t>(rounded) + 1023) << 52);
  const double e = Horner(r, kExp) * power;
  return x < kSmallest ? 0.0 : e;
}

}  // namespace

template <typename T>
void SoftmaxCrossEntropy(Panels<const T> logits, Strided<const float> labels, const float* weights,
                         const double* scales, Strided<double> loss, Panels<T> dlogits) {
  CHECK(logits.rows == dlogits.rows && logits.features == dlogits.features);
  using Lanes = double[kPanelRows];
  const int64_t classes = logits.features;
  for (int64_t panel = 0; panel < logits.panels(); ++panel) {
    const int64_t first = panel * kPanelRows;
    const T* const z = logits.Panel(panel);
    T* const dz = dlogits.Panel(panel);
    Lanes most, sum = {}, inverse;
    for (int lane = 0; lane < kPanelRows; ++lane) most[lane] = z[lane];
    for (int64_t c = 1; c < classes; ++c) {
      const T* const line = z + c * logits.feature_stride;
      for (int lane = 0; lane < kPanelRows; ++lane) {
        const double value = line[lane];
        most[lane] = value > most[lane] ? value : most[lane];
      }
    }
    for (int64_t c = 0; c < classes; ++c) {
      const T* const line = z + c * logits.feature_stride;
      for (int lane = 0; lane < kPanelRows; ++lane) {
        sum[lane] += ExpOfNegative(static_cast<double>(line[lane]) - most[lane]);
      }
    }
    int64_t label_of[kPanelRows];
    Lanes factor = {};
    for (int lane = 0; lane < kPanelRows; ++lane) {
      inverse[lane] = 1 / sum[lane];
      label_of[lane] = -1;
      if (first + lane >= logits.rows) continue;
      const int64_t row = first + lane;
      const float label = labels[row];
      loss[row] = 0;
      if (std::isnan(label)) continue;
      CHECK(label >= 0 && label < static_cast<float>(classes)) << "class " << label;
      label_of[lane] = static_cast<int64_t>(label);
      const double of_label = z[label_of[lane] * logits.feature_stride + lane];
      loss[row] =
          std::isnan(sum[lane]) ? sum[lane] : CanonicalLog(sum[lane]) + most[lane] - of_label;
      factor[lane] = (weights == nullptr ? 1.0 : double{weights[row]}) * scales[row];
    }
    for (int64_t c = 0; c < classes; ++c) {
      const T* const line = z + c * logits.feature_stride;
      T* const dline = dz + c * dlogits.feature_stride;
      for (int lane = 0; lane < kPanelRows; ++lane) {
        const double share =
            ExpOfNegative(static_cast<double>(line[lane]) - most[lane]) * inverse[lane];
        const double target = c == label_of[lane] ? 1.0 : 0.0;
        dline[lane] = factor[lane] == 0 ? T(0) : CanonicalCast<T>((share - target) * factor[lane]);
      }
    }
  }
}

ELASTOR_INSTANTIATE(SoftmaxCrossEntropy, float, double)

}  // namespace elastor
