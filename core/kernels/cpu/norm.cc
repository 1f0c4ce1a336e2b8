// The doors of norm.h.
#include "core/kernels/norm.h"

#include <vector>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/kernel_table.h"

namespace elastor {
namespace {

template <typename T>
void CheckShapes(const NormShape& shape, Panels<const T> x, Panels<const T> normalized,
                 Panels<const T> scale) {
  CHECK_GT(shape.width, 0);
  CHECK_EQ(x.features % shape.width, 0);
  CHECK_EQ(normalized.features, x.features);
  CHECK_EQ(scale.features, x.features / shape.width);
  CHECK_EQ(normalized.rows, x.rows);
  CHECK_EQ(scale.rows, x.rows);
}

}  // namespace

template <typename T>
void NormForward(const NormShape& shape, Panels<const T> x, const T* gain, const T* bias,
                 Panels<T> y, Panels<T> saved_normalized, Panels<T> saved_scale) {
  CheckShapes<T>(shape, x, saved_normalized, saved_scale);
  CHECK_EQ(y.features, x.features);
  Kernels<T>().norm.forward(shape, x, gain, bias, y, saved_normalized, saved_scale);
}

template <typename T>
void NormBackward(const NormShape& shape, Panels<const T> saved_normalized,
                  Panels<const T> saved_scale, const T* gain, Panels<const T> dy,
                  Panels<const T> residual, Panels<T> dx, T* dgain, T* dbias, Store store) {
  CheckShapes<T>(shape, dy, saved_normalized, saved_scale);
  CHECK_EQ(dx.features, dy.features);
  thread_local std::vector<T> scratch;
  scratch.resize(kNormScratch * NormScratchWidth(shape.width));
  Kernels<T>().norm.backward(shape, saved_normalized, saved_scale, gain, dy, residual, dx, dgain,
                             dbias, store, scratch.data());
}

ELASTOR_INSTANTIATE(NormForward, float, double)
ELASTOR_INSTANTIATE(NormBackward, float, double)

}  // namespace elastor
