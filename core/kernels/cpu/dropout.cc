// The door of Dropout in elementwise.h: what is checked.
#include "core/kernels/dropout.h"

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/elementwise.h"

namespace elastor {

template <typename T>
void Dropout(const DropoutKey& key, Panels<const T> x, Panels<T> y) {
  CHECK(key.rate >= 0 && key.rate < 1);
  CHECK_EQ(x.features, y.features);
  CHECK_EQ(x.rows, y.rows);
  const KeptWords kept = KeptWordsOf(key.rate);
  if (kept.scale == 0) return Fill(T(0), y);
  Kernels<T>().dropout(key, kept, x, y);
}

ELASTOR_INSTANTIATE(Dropout, float, double)

}  // namespace elastor
