#ifndef ELASTOR_CORE_PARAMETERS_GRADIENT_SINK_H_
#define ELASTOR_CORE_PARAMETERS_GRADIENT_SINK_H_

#include <cstdint>

#include "core/kernels/matmul.h"
#include "core/tensor/panels.h"

namespace elastor {

// Takes parameter gradients pass by pass, each summed over the pass's leaves. The sink decides
// their use: training folds them along the leaf tree; per-sample gradients (NTK, gradient noise),
// from passes of one row, are stored.
template <typename T>
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  // The destination of a parameter's gradient over the current pass, and whether it is stored there
  // or added. The caller writes every element once, then calls Close.
  struct Target {
    T* data;
    Store store;
  };
  virtual Target Open(int parameter) = 0;
  virtual void Close(int parameter) = 0;
};

// Takes the gradients of a pass row by row, as the factors they are made of: a row's gradient of a
// linear map is an outer product, so the NTK needs no more than its two vectors. A parameter's
// gradient is the sum of all that is added for it. Views are valid during the call.
template <typename T>
class RowGradientSink {
 public:
  virtual ~RowGradientSink() = default;

  // Adds dy x^T, row-major [dy.features][x.features], from element `first` of the parameter on.
  virtual void AddProduct(int parameter, int64_t first, Panels<const T> dy, Panels<const T> x) = 0;
  // Adds a * b element by element, or a if b is empty, from element `first` of the parameter on.
  virtual void AddTerm(int parameter, int64_t first, Panels<const T> a, Panels<const T> b) = 0;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_PARAMETERS_GRADIENT_SINK_H_
