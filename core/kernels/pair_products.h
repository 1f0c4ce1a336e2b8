#ifndef ELASTOR_CORE_KERNELS_PAIR_PRODUCTS_H_
#define ELASTOR_CORE_KERNELS_PAIR_PRODUCTS_H_

#include <cstdint>
#include <span>

#include "core/tensor/panels.h"

namespace elastor {

// A feature of view a and a feature of view b.
struct FeaturePair {
  int32_t a = 0;
  int32_t b = 0;
};

// z[row][q] = a[row][pairs[q].a] * b[row][pairs[q].b].
template <typename T>
void PairProducts(Panels<const T> a, Panels<const T> b, std::span<const FeaturePair> pairs,
                  Panels<T> z);

// Adds the gradients by FMAs, for ascending q: dz[row][q] * b[row][pairs[q].b] to
// da[row][pairs[q].a], then dz[row][q] * a[row][pairs[q].a] to db[row][pairs[q].b]. da and db may
// be the same view.
template <typename T>
void PairProductsBackward(Panels<const T> dz, Panels<const T> a, Panels<const T> b,
                          std::span<const FeaturePair> pairs, Panels<T> da, Panels<T> db);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_PAIR_PRODUCTS_H_
