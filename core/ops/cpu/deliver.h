#ifndef ELASTOR_CORE_OPS_CPU_DELIVER_H_
#define ELASTOR_CORE_OPS_CPU_DELIVER_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/parameters/gradient_sink.h"
#include "core/tensor/pass_leaves.h"

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

// Delivers a gradient that is complete in `values`.
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

// Computes the sum over a pass's leaves of gradients of `size` elements; gradient(leaf,
// destination) computes one leaf's gradient. scratch: LeafSumElements(size); its first `size`
// elements become the sum. It serves gradients whose kernels do not add leaves themselves: small
// gradients, and gradients of parameters that several parts of the input share. The parts are added
// within a leaf before leaves are added.
inline constexpr int64_t LeafSumElements(int64_t size) { return kMaxLeafSums * size; }
template <typename T, typename Gradient>
void SumOverLeaves(std::span<const LeafRows> leaves, int64_t size, T* scratch,
                   const Gradient& gradient) {
  T* newest = scratch - size;
  for (const LeafRows& leaf : leaves) {
    newest += size;
    gradient(leaf, newest);
    for (int merge = 0; merge < leaf.merges; ++merge) {
      newest -= size;
      for (int64_t i = 0; i < size; ++i) newest[i] += newest[size + i];
    }
  }
}

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_CPU_DELIVER_H_
