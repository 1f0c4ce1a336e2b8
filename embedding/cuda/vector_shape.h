#ifndef ELASTOR_EMBEDDING_CUDA_VECTOR_SHAPE_H_
#define ELASTOR_EMBEDDING_CUDA_VECTOR_SHAPE_H_

#include <cstdint>

namespace elastor::cuda {

// The shape by which kernels iterate over rows and gradients of all tables.
struct VectorShape {
  int64_t widest = 0;    // the largest of the tables' widths
  bool aligned = false;  // all widths are multiples of 4, so kernels load four elements at once

  int columns() const { return aligned ? 4 : 1; }
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_VECTOR_SHAPE_H_
