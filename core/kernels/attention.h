#ifndef ELASTOR_CORE_KERNELS_ATTENTION_H_
#define ELASTOR_CORE_KERNELS_ATTENTION_H_

#include <cstdint>

#include "core/base/build_config.h"
#include "core/kernels/dropout.h"
#include "core/tensor/panels.h"

namespace elastor {

// Multi-head attention between the tokens of one row: queries q [Tq, h, d], keys k [Tk, h, d] and
// values v [Tk, h, dv], token after token and in a token head after head. For every head
//
//   s_ij = scale (q_i . k_j) + b_{i-j}            b: the position bias, where there is one
//   w_ij = exp(s_ij - m_i) / sum_j' exp(s_ij' - m_i), m_i = max_j s_ij     kSoftmax
//   w_ij = SiLU(s_ij) / Tk                                                 kSilu
//   y_i  = sum_j w_ij v_j                         y [Tq, h, dv]
//
// kSilu is the pointwise aggregated attention of HSTU (Zhai et al. 2024, eq. 2): without a softmax
// the weights tell how often something was seen, and Tk, not the row's length, divides them.
//
// A row may have a length, the number of its keys: the first ones, or with `last_keys` the last
// ones. i sees these. Where `causal`, query i is key p_i = i + Tk - Tq, and it sees of these the
// keys j <= p_i, or none if p_i is none of these itself. Weights of unseen keys are exactly 0,
// whatever finite numbers they hold, and a query that sees no key has y_i = 0. The position bias
// then is b_{p_i - j}.
//
// Dropout acts on the weights: y_i = sum_j mask_ij w_ij v_j, where mask_ij of a head, 0 or 1 / (1 -
// rate), is the mask of the row's feature (head * Tq + i) * Tk + j (dropout.h).
//
// Order of additions of an element, on the CPU: every sum is one FMA chain from +0. The chain of
// s_ij runs over the features of the head ascending, the chains of y_i and dq_i over j, and those
// of dv_j and dk_j over i. The softmax's sum consists of additions over j, and db's of additions
// over heads and then over i. +0 is added to a chain's result, so that skipping weights of 0 at its
// end changes no bit. Multiplying by `scale`, adding b and dividing (by one multiplication with the
// reciprocal) round each, and so does multiplying a weight, or its gradient, by the mask.
enum class AttentionKind { kSoftmax, kSilu };

struct AttentionShape {
  AttentionKind kind = AttentionKind::kSoftmax;
  int64_t queries = 0;      // Tq
  int64_t keys = 0;         // Tk
  int64_t heads = 1;        // h
  int64_t width = 0;        // d, of a head
  int64_t value_width = 0;  // dv, of a head
  double scale = 1;
  bool causal = false;     // then Tq <= Tk
  bool last_keys = false;  // a row with a length has its last keys, not its first

  // Returns p_i where causal, else i.
  [[gnu::always_inline]] ELASTOR_HOST_DEVICE int64_t position(int64_t query) const {
    return causal ? query + keys - queries : query;
  }
  // Returns the number of differences i - j that are seen, from first_difference() on. It is the
  // number of elements of the position bias.
  [[gnu::always_inline]] ELASTOR_HOST_DEVICE int64_t differences() const {
    return causal ? keys : queries + keys - 1;
  }
  [[gnu::always_inline]] ELASTOR_HOST_DEVICE int64_t first_difference() const {
    return causal ? 0 : 1 - keys;
  }
};

// Returns the index of the position bias of (query, key). REQUIRES: not causal, or key <= p_query.
[[gnu::always_inline]] ELASTOR_HOST_DEVICE inline int64_t DifferenceOf(const AttentionShape& shape,
                                                                       int64_t query, int64_t key) {
  return shape.position(query) - key - shape.first_difference();
}

// q: [rows, Tq h d], k: [rows, Tk h d], v: [rows, Tk h dv], y: [rows, Tq h dv], different memory.
// lengths: [rows, 1], or empty. position_bias: differences() elements, or null. dropout: there is
// none if its rate is 0.
template <typename T>
void AttentionForward(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                      Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                      const DropoutKey& dropout, Panels<T> y);

// Computes the weights again. dq, dk, dv: like q, k, v. dposition_bias: [rows, differences()]
// receives each row's part of the gradient of the position bias; empty if there is no bias.
template <typename T>
void AttentionBackward(const AttentionShape& shape, Panels<const T> q, Panels<const T> k,
                       Panels<const T> v, Panels<const T> lengths, const T* position_bias,
                       const DropoutKey& dropout, Panels<const T> dy, Panels<T> dq, Panels<T> dk,
                       Panels<T> dv, Panels<T> dposition_bias);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_ATTENTION_H_
