#ifndef ELASTOR_CORE_OPS_EMBEDDING_INPUT_H_
#define ELASTOR_CORE_OPS_EMBEDDING_INPUT_H_

#include "core/ops/op.h"

namespace elastor {

// E [n + positions, k]: the embedding of every field, numeric fields first, and behind them those
// of the sequences' positions (docs/reference/models.md, "Behaviour sequences"). The embedding
// tables fill all vectors except the numeric fields' before the pass. A numeric field's vector is
// value * vector, or the field's `missing` vector where the value is NaN.
//
// Parameters, with numeric fields only: vectors and missing, [numeric_fields, k] each.
struct EmbeddingInputOp : OpBase {
  static constexpr const char* kName = "embedding input";
  int64_t numeric_fields = 0;
  int64_t categorical_fields = 0;
  int64_t positions = 0;
  int64_t width = 0;  // k

  int64_t numeric_features() const { return numeric_fields * width; }
  bool row_gradients() const { return true; }
  Shape OutputShape(std::span<const Shape> inputs) const {
    CHECK(inputs.empty());
    return {numeric_fields + categorical_fields + positions, width};
  }
};
ELASTOR_DECLARE_KERNELS(EmbeddingInputOp)

}  // namespace elastor

#endif  // ELASTOR_CORE_OPS_EMBEDDING_INPUT_H_
