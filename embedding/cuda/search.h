#ifndef ELASTOR_EMBEDDING_CUDA_SEARCH_H_
#define ELASTOR_EMBEDDING_CUDA_SEARCH_H_

#include <cstdint>

#include "core/base/build_config.h"

namespace elastor::cuda {

// Returns the index of the first of `count` ascending values that is not below `value`; count if
// there is none.
template <typename T>
ELASTOR_HOST_DEVICE inline int64_t LowerBound(const T* values, int64_t count, T value) {
  int64_t begin = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    if (values[begin + half] < value) {
      begin += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return begin;
}

// Returns the segment that holds item i. begins[0..segments] ascend from 0; some segments may be
// empty.
ELASTOR_HOST_DEVICE inline int64_t SegmentOf(const int64_t* begins, int64_t segments, int64_t i) {
  return LowerBound(begins, segments + 1, i + 1) - 1;
}

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_SEARCH_H_
