#include "core/kernels/cpu/isa/kernels.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

template <typename T>
void Forward(Panels<const T> a, Panels<const T> b, const FeaturePair* pairs, const FeaturePair* end,
             Panels<T> z) {
  for (int64_t panel = 0; panel < z.panels(); ++panel) {
    for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
      const T* const a_rows = a.Panel(panel) + lane;
      const T* const b_rows = b.Panel(panel) + lane;
      T* out = z.Panel(panel) + lane;
      for (const FeaturePair* pair = pairs; pair != end; ++pair, out += z.feature_stride) {
        Save(out,
             Load(a_rows + pair->a * a.feature_stride) * Load(b_rows + pair->b * b.feature_stride));
      }
    }
  }
}

// The sum of a feature of a stays in a register while the pairs have that feature.
template <typename T>
void Backward(Panels<const T> dz, Panels<const T> a, Panels<const T> b, const FeaturePair* pairs,
              const FeaturePair* end, Panels<T> da, Panels<T> db) {
  for (int64_t panel = 0; panel < dz.panels(); ++panel) {
    for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
      const T* d = dz.Panel(panel) + lane;
      for (const FeaturePair* pair = pairs; pair != end;) {
        const int32_t feature = pair->a;
        const Vec<T> value = Load(a.Panel(panel) + feature * a.feature_stride + lane);
        T* const to_a = da.Panel(panel) + feature * da.feature_stride + lane;
        Vec<T> sum = Load(to_a);
        for (; pair != end && pair->a == feature; ++pair, d += dz.feature_stride) {
          const Vec<T> gradient = Load(d);
          sum = Fma(gradient, Load(b.Panel(panel) + pair->b * b.feature_stride + lane), sum);
          T* const to_b = db.Panel(panel) + pair->b * db.feature_stride + lane;
          if (to_b == to_a) {
            sum = Fma(gradient, value, sum);
          } else {
            Save(to_b, Fma(gradient, value, Load(to_b)));
          }
        }
        Save(to_a, sum);
      }
    }
  }
}

}  // namespace

template <typename T>
constinit const PairProductKernels<T> IsaKernels<T>::pair_products = {.forward = Forward<T>,
                                                                      .backward = Backward<T>};
ELASTOR_INSTANTIATE_KERNELS(pair_products)

}  // namespace ELASTOR_ISA
}  // namespace elastor
