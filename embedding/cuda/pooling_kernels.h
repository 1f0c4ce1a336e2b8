#ifndef ELASTOR_EMBEDDING_CUDA_POOLING_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_POOLING_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/table_view.h"
#include "embedding/cuda/vector_shape.h"

namespace elastor::cuda {

// The bags of a batch with the rows of their ids; device memory.
struct BagRows {
  int64_t fields = 0;
  const FieldView* field_views = nullptr;
  const int64_t* offsets = nullptr;           // by bag; null: one id a bag
  const uint32_t* unique_of = nullptr;        // by occurrence
  const float* const* rows_of_ids = nullptr;  // by unique id
};

// Pools bags as PoolBags of embedding/bag_pooling.h does. The features of local row local_row[r]
// are written from e + r * row_stride on, for r in [0, device_rows); zeros where it is -1.
template <typename A>
void PoolBags(Stream& stream, const BagRows& bags, const int32_t* local_row, int64_t device_rows,
              const VectorShape& shape, A* e, int64_t row_stride);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_POOLING_KERNELS_H_
