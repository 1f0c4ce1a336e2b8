#ifndef ELASTOR_EMBEDDING_CUDA_GRADIENT_SOURCE_H_
#define ELASTOR_EMBEDDING_CUDA_GRADIENT_SOURCE_H_

// For kernel sources (.cu) only: the gradients of occurrences, and of owned rows, in registers.

#include <cstdint>

#include "embedding/cuda/columns.h"
#include "embedding/cuda/gradient_kernels.h"

namespace elastor::cuda {

// Loads columns [column, column + kColumns) of the gradient of sorted occurrence i: its bag's
// gradient, times 1/length if the bag is averaged.
template <typename A, int kColumns>
__device__ void LoadOccurrence(const BagGradients<A>& bags, int64_t i, int column,
                               float (&to)[kColumns]) {
  const OccurrenceSource source = bags.sources[i];
  const int64_t device_row = bags.device_row[source.row];
  const A* const from = bags.de + device_row * bags.row_stride + source.feature + column;
  if (kColumns == 1 || bags.aligned) {  // alike for all threads
    LoadColumns(from, to);
  } else {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      float one[1];
      LoadColumns(from + c, one);
      to[c] = one[0];
    }
  }
  if (bags.scales == nullptr) return;
  const float scale = bags.scales[i];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to[c] *= scale;
}

// Returns the place of owned key j's gradient: ~i if sorted occurrence i is its only one, else the
// number of a listed vector or, with several ranks, an offset in the gradient array.
inline __device__ int64_t SourceOf(const GradientArray& array, int64_t j) {
  return array.direct != nullptr ? array.direct[j] : array.node_gradients[array.node_begin[j]];
}

// The same place as an address.
template <typename A>
struct GradientPlace {
  const float* sum = nullptr;
  const A* bag = nullptr;  // gradient of the only occurrence's bag; null: see sum
  float scale = 1;
};

// Finds the places of kRows keys' gradients, with all their loads in flight together. The source of
// a missing key is 0.
template <typename A, int kRows>
__device__ void FindGradients(const BagGradients<A>& bags, const GradientArray& array,
                              const int64_t (&sources)[kRows], GradientPlace<A> (&places)[kRows]) {
  const int64_t stride = array.direct != nullptr ? array.stride : 1;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    places[r].sum = array.vectors + (sources[r] < 0 ? 0 : sources[r] * stride);
  }
  if (array.direct == nullptr) return;  // with several ranks all gradients are sums
  // Every thread loads, if need be occurrence 0, which exists if there is any key.
  int64_t occurrences[kRows];
  OccurrenceSource bag_sources[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    occurrences[r] = sources[r] < 0 ? ~sources[r] : 0;
    bag_sources[r] = bags.sources[occurrences[r]];
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int64_t device_row = bags.device_row[bag_sources[r].row];
    const A* const bag = bags.de + device_row * bags.row_stride + bag_sources[r].feature;
    places[r].bag = sources[r] < 0 ? bag : nullptr;
    if (bags.scales == nullptr) continue;
    const float scale = bags.scales[occurrences[r]];
    places[r].scale = sources[r] < 0 ? scale : 1.0f;
  }
}

// Columns of a gradient as they lie in memory, in words. A thread waits for a load only when it
// uses the loaded value, so the loads of several rows are in flight before it converts the first.
template <int kColumns>
struct RawColumns {
  unsigned words[kColumns] = {};
};

inline __device__ void LoadWords(const float* from, RawColumns<kVector>* to) {
  const uint4 v = *reinterpret_cast<const uint4*>(from);
  to->words[0] = v.x, to->words[1] = v.y, to->words[2] = v.z, to->words[3] = v.w;
}
template <int kColumns>
__device__ void LoadWordByWord(const float* from, RawColumns<kColumns>* to) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to->words[c] = __float_as_uint(from[c]);
}
inline __device__ void LoadWords(const float* from, RawColumns<1>* to) { LoadWordByWord(from, to); }

template <int kColumns>
__device__ void LoadRaw(const BagGradients<float>& bags, const GradientPlace<float>& place,
                        int column, RawColumns<kColumns>* to) {
  const float* const from = (place.bag != nullptr ? place.bag : place.sum) + column;
  if (kColumns == 1 || bags.aligned) {  // alike for all threads
    LoadWords(from, to);
  } else {
    LoadWordByWord(from, to);
  }
}
template <int kColumns>
__device__ void LoadRaw(const BagGradients<BFloat16>& bags, const GradientPlace<BFloat16>& place,
                        int column, RawColumns<kColumns>* to) {
  if (place.bag == nullptr) {
    LoadWords(place.sum + column, to);
  } else if (kColumns == 1 || !bags.aligned) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) to->words[c] = place.bag[column + c].bits;
  } else {
    const uint2 v = *reinterpret_cast<const uint2*>(place.bag + column);
    to->words[0] = v.x, to->words[kColumns - 1] = v.y;
  }
}

template <int kColumns>
__device__ void Convert(const BagGradients<float>&, const GradientPlace<float>&,
                        const RawColumns<kColumns>& raw, float (&to)[kColumns]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to[c] = __uint_as_float(raw.words[c]);
}
template <int kColumns>
__device__ void Convert(const BagGradients<BFloat16>& bags, const GradientPlace<BFloat16>& place,
                        const RawColumns<kColumns>& raw, float (&to)[kColumns]) {
  const bool pairs = kColumns > 1 && bags.aligned;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const unsigned pair = raw.words[c < kColumns / 2 ? 0 : kColumns - 1];
    const unsigned alone =
        pairs ? (c % 2 == 0 ? pair << 16 : pair & 0xffff0000u) : raw.words[c] << 16;
    to[c] = __uint_as_float(place.bag == nullptr ? raw.words[c] : alone);
  }
}

// Computes the summed gradient of an owned key, without L2. Sums start at +0, even of a single
// occurrence, so none is -0.
template <typename A, int kColumns>
__device__ void FinishGradient(const BagGradients<A>& bags, const GradientPlace<A>& place,
                               const RawColumns<kColumns>& raw, float (&to)[kColumns]) {
  Convert(bags, place, raw, to);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) to[c] = 0.0f + to[c] * place.scale;
}

// Adds l2 * w to g.
template <int kColumns>
__device__ void AddL2(float l2, const float (&w)[kColumns], float (&g)[kColumns]) {
  if (l2 == 0) return;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) g[c] += l2 * w[c];
}

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_GRADIENT_SOURCE_H_
