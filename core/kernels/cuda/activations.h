#ifndef ELASTOR_CORE_KERNELS_CUDA_ACTIVATIONS_H_
#define ELASTOR_CORE_KERNELS_CUDA_ACTIVATIONS_H_

#include <cstdint>
#include <type_traits>

#include "core/base/log.h"

namespace elastor::cuda {

// The rows that are computed at once, the device rows: `leaves` leaves of `leaf_rows` (S) device
// rows each; leaf l has device rows [l S, (l + 1) S). S is the length of the longest leaf of the
// whole batch, the same on every rank. The device rows behind a shorter leaf's rows are padding:
// their values are finite and meaningless, their gradients are exactly 0.
struct LeafShape {
  int64_t leaves = 0;
  int64_t leaf_rows = 0;
  int64_t rows() const { return leaves * leaf_rows; }
  bool operator==(const LeafShape&) const = default;
};

// A view of activations [rows, tokens, features] in device memory: element (r, t, f) at
//   data[r * row_stride + t * token_stride + f].
// Does not own the memory. Passed by value.
template <typename A>
struct Activations {
  A* data = nullptr;
  int64_t rows = 0;
  int64_t tokens = 1;
  int64_t features = 0;  // features of a token
  int64_t row_stride = 0;
  int64_t token_stride = 0;

  // Returns a view of a row-major tensor [rows][tokens][features].
  static Activations RowMajor(A* data, int64_t rows, int64_t tokens, int64_t features) {
    return {data, rows, tokens, features, tokens * features, features};
  }
  // Returns a view of [tokens][rows][features]: a token's rows, leaf after leaf, are one matrix, so
  // that weight gradients of all tokens and leaves are one batch of products.
  static Activations TokenMajor(A* data, int64_t rows, int64_t tokens, int64_t features) {
    return {data, rows, tokens, features, features, rows * features};
  }

  bool row_major() const { return token_stride == features && row_stride == tokens * features; }
  // Returns whether a row's tokens lie one after another. (Of a single row the strides of both
  // layouts may agree between tokens, but then rows would overlap.)
  bool rows_together() const {
    return tokens == 1 || (token_stride == features && row_stride >= tokens * features);
  }
  // The features of a row cut into other tokens. REQUIRES: rows_together().
  Activations WithTokens(int64_t count) const {
    if (count == tokens) return *this;
    CHECK(rows_together() && tokens * features % count == 0);
    const int64_t width = tokens * features / count;
    return {data, rows, count, width, row_stride, width};
  }
  // Returns tokens [begin, begin + count).
  Activations Tokens(int64_t begin, int64_t count) const {
    CHECK_LE(begin + count, tokens);
    return {data + begin * token_stride, rows, count, features, row_stride, token_stride};
  }
  // Returns features [begin, begin + count) of every token.
  Activations Slice(int64_t begin, int64_t count) const {
    CHECK_LE(begin + count, features);
    return {data + begin, rows, tokens, count, row_stride, token_stride};
  }

  template <typename B>
  operator Activations<B>() const requires(!std::is_const_v<A> && std::is_same_v<B, const A>) {
    return {data, rows, tokens, features, row_stride, token_stride};
  }
};

template <typename A, typename B>
void CheckSameShape(const Activations<A>& a, const Activations<B>& b) {
  CHECK(a.rows == b.rows && a.tokens == b.tokens && a.features == b.features);
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_ACTIVATIONS_H_
