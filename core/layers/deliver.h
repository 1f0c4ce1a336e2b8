#ifndef ELASTOR_CORE_LAYERS_DELIVER_H_
#define ELASTOR_CORE_LAYERS_DELIVER_H_

#include <algorithm>
#include <cstdint>

#include "core/parameters/gradient_sink.h"

namespace elastor {

// Delivers the gradient of a parameter that several parts of the input share: part(i, destination,
// store) computes share i of `size` elements. The shares are added in ascending order in `scratch`
// before the sum meets another leaf's gradient.
template <typename T, typename Part>
void DeliverSum(GradientSink<T>* sink, int parameter, int64_t size, int64_t shares, T* scratch,
                const Part& part) {
  const auto target = sink->Open(parameter);
  for (int64_t i = 0; i < shares; ++i) {
    part(i, scratch, i == 0 ? Store::kOverwrite : Store::kAdd);
  }
  if (target.store == Store::kOverwrite) {
    std::copy(scratch, scratch + size, target.data);
  } else {
    for (int64_t i = 0; i < size; ++i) target.data[i] += scratch[i];
  }
  sink->Close(parameter);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_DELIVER_H_
