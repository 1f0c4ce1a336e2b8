// The doors of pair_products.h: what is checked.
#include "core/kernels/pair_products.h"

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/kernel_table.h"

namespace elastor {

template <typename T>
void PairProducts(Panels<const T> a, Panels<const T> b, std::span<const FeaturePair> pairs,
                  Panels<T> z) {
  CHECK_EQ(z.features, static_cast<int64_t>(pairs.size()));
  CHECK(a.rows == z.rows && b.rows == z.rows);
  Kernels<T>().pair_products.forward(a, b, pairs.data(), pairs.data() + pairs.size(), z);
}

template <typename T>
void PairProductsBackward(Panels<const T> dz, Panels<const T> a, Panels<const T> b,
                          std::span<const FeaturePair> pairs, Panels<T> da, Panels<T> db) {
  CHECK_EQ(dz.features, static_cast<int64_t>(pairs.size()));
  CHECK(a.rows == dz.rows && b.rows == dz.rows && da.rows == dz.rows && db.rows == dz.rows);
  Kernels<T>().pair_products.backward(dz, a, b, pairs.data(), pairs.data() + pairs.size(), da, db);
}

ELASTOR_INSTANTIATE(PairProducts, float, double)
ELASTOR_INSTANTIATE(PairProductsBackward, float, double)

}  // namespace elastor
