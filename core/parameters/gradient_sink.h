#ifndef ELASTOR_CORE_PARAMETERS_GRADIENT_SINK_H_
#define ELASTOR_CORE_PARAMETERS_GRADIENT_SINK_H_

#include <cstdint>

#include "core/kernels/matmul.h"
#include "core/tensor/panels.h"

namespace elastor {

// Takes parameter gradients pass by pass, each summed over the pass's leaves. What becomes of them
// is the sink's affair: training folds them along the leaf tree; per-sample gradients (NTK,
// gradient noise), passes of one row, are stored.
template <typename T>
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  // Where the gradient of a parameter over the current pass goes, and whether it is stored there or
  // added. The caller writes every element once, then calls Close.
  struct Target {
    T* data;
    Store store;
  };
  virtual Target Open(int parameter) = 0;
  virtual void Close(int parameter) = 0;
};

// Takes the gradients of a pass row by row, as the factors of which they are made: a row's gradient
// of a linear map is an outer product, so the NTK needs no more than its two vectors. A parameter's
// gradient is the sum of what comes for it. Views hold during the call.
template <typename T>
class RowGradientSink {
 public:
  virtual ~RowGradientSink() = default;

  // dy x^T, row-major [dy.features][x.features], from element `first` of the parameter on.
  virtual void AddProduct(int parameter, int64_t first, Panels<const T> dy, Panels<const T> x) = 0;
  // a * b element by element; a itself where b is empty.
  virtual void AddTerm(int parameter, int64_t first, Panels<const T> a, Panels<const T> b) = 0;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_PARAMETERS_GRADIENT_SINK_H_
