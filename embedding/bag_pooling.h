#ifndef ELASTOR_EMBEDDING_BAG_POOLING_H_
#define ELASTOR_EMBEDDING_BAG_POOLING_H_

#include <cstdint>

#include "core/tensor/panels.h"
#include "embedding/embedding_layout.h"
#include "embedding/unique_ids.h"

namespace elastor {

// Pools the bags of rows [row_begin, row_begin + e.rows) of the batch into e: [rows, features].
// rows_of_ids[u]: the row of unique id u. A bag's rows are added in order to a copy of the first;
// kMean multiplies by 1/length; an empty bag is 0.
template <typename T>
void PoolBags(const EmbeddingLayout& layout, const UniqueIds& ids, const T* const* rows_of_ids,
              int64_t row_begin, Panels<T> e);

// The backward pass: writes gradients[row][feature] of the bags of the same rows; each id of a bag
// has the bag's gradient (kMean: de times 1/length). +0 is added to every element, so that no
// gradient is -0. An id's only gradient therefore equals that id's sum from +0.
template <typename T>
void UnpoolGradients(const EmbeddingLayout& layout, const UniqueIds& ids, int64_t row_begin,
                     Panels<const T> de, T* gradients);

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_BAG_POOLING_H_
