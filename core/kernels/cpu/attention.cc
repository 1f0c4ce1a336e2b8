// The doors of attention.h.
#include "core/kernels/attention.h"

#include <vector>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/kernel_table.h"

namespace elastor {
namespace {

template <typename T>
void CheckShapes(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                 Panels<const T> v, Panels<const T> lengths, Panels<const T> y) {
  CHECK_EQ(q.features, shape.queries * shape.heads * shape.width);
  CHECK_EQ(k.features, shape.keys * shape.heads * shape.width);
  CHECK_EQ(v.features, shape.keys * shape.heads * shape.value_width);
  CHECK_EQ(y.features, shape.queries * shape.heads * shape.value_width);
  for (const Panels<const T>& view : {k, v, y}) CHECK_EQ(view.rows, q.rows);
  if (lengths.data != nullptr) {
    CHECK_EQ(lengths.rows, q.rows);
    CHECK_EQ(lengths.features, 1);
  }
  if (shape.causal) CHECK_LE(shape.queries, shape.keys);
}

AttentionMask MaskOf(const DropoutKey& dropout) {
  CHECK(dropout.rate >= 0 && dropout.rate < 1) << dropout.rate;
  return {dropout, KeptWordsOf(dropout.rate)};
}

template <typename T>
T* ScratchOf(const AttentionShape& shape) {
  thread_local std::vector<T> scratch;
  scratch.resize(4 * kAttentionQueries * shape.keys * kPanelRows);
  return scratch.data();
}

}  // namespace

template <typename T>
void AttentionForward(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                      Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                      const DropoutKey& dropout, Panels<T> y) {
  CheckShapes<T>(shape, q, k, v, lengths, y);
  Kernels<T>().attention.forward(shape, q, k, v, lengths, position_bias, MaskOf(dropout), y,
                                 ScratchOf<T>(shape));
}

template <typename T>
void AttentionBackward(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                       Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                       const DropoutKey& dropout, Panels<const T> dy, Panels<T> dq, Panels<T> dk,
                       Panels<T> dv, Panels<T> dposition_bias) {
  CheckShapes<T>(shape, q, k, v, lengths, dy);
  CheckShapes<T>(shape, dq, dk, dv, {}, dy);
  if (dposition_bias.data != nullptr) CHECK_EQ(dposition_bias.features, shape.differences());
  Kernels<T>().attention.backward(shape, q, k, v, lengths, position_bias, MaskOf(dropout), dy, dq,
                                  dk, dv, dposition_bias, ScratchOf<T>(shape));
}

ELASTOR_INSTANTIATE(AttentionForward, float, double)
ELASTOR_INSTANTIATE(AttentionBackward, float, double)

}  // namespace elastor
