#ifndef ELASTOR_EMBEDDING_CUDA_VECTOR_SHAPE_H_
#define ELASTOR_EMBEDDING_CUDA_VECTOR_SHAPE_H_

#include <cstdint>

namespace elastor::cuda {

// How kernels go over rows and gradients of all tables.
struct VectorShape {
  int64_t widest = 0;    // of the tables' widths
  bool aligned = false;  // all widths are multiples of 4: loads of four elements

  int columns() const { return aligned ? 4 : 1; }
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_VECTOR_SHAPE_H_
