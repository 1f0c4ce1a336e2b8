#ifndef ELASTOR_CORE_KERNELS_CUDA_ACTIVATE_H_
#define ELASTOR_CORE_KERNELS_CUDA_ACTIVATE_H_

#include "core/cuda/math.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/matmul.h"

// For kernel sources: activations and biases of a pack.

namespace elastor::cuda {

template <int kCount>
struct ValuesAndSlopes {
  Values<kCount> value;
  Values<kCount> slope;
};

template <int kCount, typename Function>
__device__ inline ValuesAndSlopes<kCount> Map(const Values<kCount>& x, Function function) {
  ValuesAndSlopes<kCount> results;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const ValueAndSlope result = function(x.v[i]);
    results.value.v[i] = result.value;
    results.slope.v[i] = result.slope;
  }
  return results;
}

// Branches once for the whole pack, and all threads take the same branch.
template <int kCount>
__device__ inline ValuesAndSlopes<kCount> Activate(Activation activation, const Values<kCount>& x) {
  switch (activation) {
    case Activation::kGelu:
      return Map(x, [](float v) { return Gelu(v); });
    case Activation::kSwish:
      return Map(x, [](float v) { return Swish(v); });
    case Activation::kTanh:
      return Map(x, [](float v) { return TanhAndSlope(v); });
    case Activation::kSigmoid:
      return Map(x, [](float v) { return SigmoidAndSlope(v); });
    case Activation::kLeakyRelu:
      return Map(x, [](float v) { return LeakyRelu(v, kLeakySlope); });
    case Activation::kRelu:
      return Map(x, [](float v) { return Relu(v); });
    case Activation::kIdentity:
      break;
  }
  return Map(x, [](float v) { return ValueAndSlope{v, 1.0f}; });
}

// A bias per feature, or none.
struct Bias {
  const float* data = nullptr;
  int64_t token_stride = 0;
  bool aligned = false;  // packs may be read at once

  // A pack starts at a multiple of its length, so the bias can be read in packs where its first
  // element and its tokens are aligned.
  Bias(const float* data, int64_t token_stride)
      : data(data),
        token_stride(token_stride),
        aligned(reinterpret_cast<uintptr_t>(data) % 16 == 0 && token_stride % 4 == 0) {}

  template <int kCount>
  __device__ void AddTo(const Index& index, Values<kCount>* values) const {
    if (data == nullptr) return;
    const float* const bias = data + index.token * token_stride + index.feature;
    constexpr int kPack = kCount < 4 ? kCount : 4;
    for (int begin = 0; begin < kCount; begin += kPack) {
      Values<kPack> part;
      if (aligned) {
        part = LoadValues<kPack>(bias + begin);
      } else {
        for (int i = 0; i < kPack; ++i) part.v[i] = bias[begin + i];
      }
      for (int i = 0; i < kPack; ++i) values->v[begin + i] += part.v[i];
    }
  }
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_ACTIVATE_H_
