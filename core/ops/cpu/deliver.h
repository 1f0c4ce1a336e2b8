#ifndef ELASTOR_CORE_OPS_CPU_DELIVER_H_
#define ELASTOR_CORE_OPS_CPU_DELIVER_H_

#include <algorithm>
#include <cstdint>

#include "core/parameters/gradient_sink.h"

namespace elastor {

// Delivers the gradient of a parameter in parts of `size` elements that lie one after another:
// part(i, destination, store) computes part i of `parts`.
template <typename T, typename Part>
void DeliverParts(GradientSink<T>* sink, int parameter, int64_t size, int64_t parts,
                  const Part& part) {
  const auto target = sink->Open(parameter);
  for (int64_t i = 0; i < parts; ++i) part(i, target.data + i * size, target.store);
  sink->Close(parameter);
}

// Delivers a gradient that lies ready in `values`.
template <typename T>
void DeliverCopy(GradientSink<T>* sink, int parameter, int64_t size, const T* values) {
  const auto target = sink->Open(parameter);
  if (target.store == Store::kOverwrite) {
    std::copy(values, values + size, target.data);
  } else {
    for (int64_t i = 0; i < size; ++i) target.data[i] += values[i];
  }
  sink->Close(parameter);
}

// Delivers the gradient of a parameter that several parts of the input share: part(i, destination,
// store) computes share i of `size` elements. The shares are added in ascending order in `scratch`
// before the sum meets another leaf's gradient.
template <typename T, typename Part>
void DeliverSum(GradientSink<T>* sink, int parameter, int64_t size, int64_t shares, T* scratch,
                const Part& part) {
  for (int64_t i = 0; i < shares; ++i) {
    part(i, scratch, i == 0 ? Store::kOverwrite : Store::kAdd);
  }
  DeliverCopy(sink, parameter, size, scratch);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_CPU_DELIVER_H_
