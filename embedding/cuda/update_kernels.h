#ifndef ELASTOR_EMBEDDING_CUDA_UPDATE_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_UPDATE_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "core/optimizer/adagrad.h"
#include "core/optimizer/adam.h"
#include "core/optimizer/row_wise_adagrad.h"
#include "core/optimizer/sgd.h"
#include "embedding/cuda/gradient_kernels.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/table_view.h"
#include "embedding/cuda/update_gate.h"
#include "embedding/cuda/vector_shape.h"

namespace elastor::cuda {

// Takes one step of an optimizer's rule on the rows of the owned keys, with the gradient
// (gradient + l2 * w) * gate->scale. A closed gate leaves the rows as they are. row_squares: what
// AddSquares wrote, which RowWiseAdagrad's rule needs.
template <typename Rule, typename A>
void UpdateRows(Stream& stream, const Rule& rule, const OwnedKeys& owned, const TableView* tables,
                const BagGradients<A>& bags, const GradientArray& array, float* const* rows,
                float l2, const double* row_squares, const VectorShape& shape,
                const UpdateGate* gate);

// Takes the same step on the rows of a table that are present and not marked; their gradient is
// l2 * w * gate->scale.
void UpdateUntouchedRows(Stream& stream, const Adam<float>& rule, const TableView& table,
                         const uint32_t* marks, float l2, const VectorShape& shape,
                         const UpdateGate* gate);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_UPDATE_KERNELS_H_
