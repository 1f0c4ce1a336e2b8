#include "core/kernels/cpu/isa/kernels.h"
#include "core/kernels/cpu/isa/lane_matrix.h"
#include "core/kernels/cpu/philox_vec.h"
#include "core/kernels/cpu/vec_math.h"

namespace elastor {
inline namespace ELASTOR_ISA {
namespace {

// Vector `vector` of rows of a view [rows, tokens, heads, width]: the tokens of one head, from
// `token` on.
template <typename T>
ELASTOR_INLINE LaneMatrix<T> Tokens(Panels<T> view, int64_t vector, int64_t heads, int64_t width,
                                    int64_t head, int64_t token) {
  return {Line(view, vector, (token * heads + head) * width), heads * width * view.feature_stride,
          view.feature_stride};
}

// The lengths of a vector of rows.
template <typename T>
struct Lengths {
  Vec<T> lanes;
  int64_t longest;

  // `longest` is the end of the keys that any of the rows has.
  ELASTOR_INLINE Lengths(Panels<const T> view, int64_t vector, const AttentionShape& shape)
      : lanes(Broadcast(static_cast<T>(shape.keys))), longest(shape.keys) {
    if (view.data == nullptr) return;
    const Vec<T> given = Load(Line(view, vector, 0));
    lanes = given < lanes ? given : lanes;
    if (shape.last_keys) return;
    longest = 0;
    for (int i = 0; i < kLanes<T>; ++i) {
      if (lanes[i] > static_cast<T>(longest)) {
        longest = static_cast<int64_t>(lanes[i]);
        if (static_cast<T>(longest) < lanes[i]) ++longest;
      }
    }
  }
};

// Some queries of a head and the keys that any of the rows sees from them.
template <typename T>
struct Block {
  int64_t first_query;
  int64_t queries;
  int64_t keys;

  ELASTOR_INLINE Block(const AttentionShape& shape, int64_t first, int64_t longest)
      : first_query(first),
        queries(Least(kAttentionQueries, shape.queries - first)),
        keys(shape.causal && shape.position(first) >= longest ? 0
             : shape.causal ? Least(longest, shape.position(first) + queries)
                            : longest) {}
};

// Turns the products q . k of a block into weights and, for kSilu, receives their derivatives by
// the scores.
template <typename T>
void WeightsOf(const AttentionShape& shape, const Block<T>& block, Vec<T> lengths,
               const T* position_bias, LaneMatrix<T> weights, LaneMatrix<T> slopes) {
  using V = Vec<T>;
  const V zero = {};
  const V scale = Broadcast(static_cast<T>(shape.scale));
  const V share = Broadcast(T(1) / static_cast<T>(shape.keys));
  for (int64_t i = 0; i < block.queries; ++i) {
    const int64_t query = block.first_query + i;
    const int64_t position = shape.position(query);
    const V keys = Broadcast(static_cast<T>(shape.keys));
    const V begin = shape.last_keys ? keys - lengths : zero;
    V end = shape.last_keys ? keys : lengths;
    if (shape.causal) {
      const V last = Broadcast(static_cast<T>(position));
      end = last < end ? last + 1 : zero;
    }
    const auto score = [&](int64_t j) [[gnu::always_inline]] {
      const V scaled = Load(weights.At(i, j)) * scale;
      // The bias of a key behind a causal query is of no account.
      if (position_bias == nullptr || (shape.causal && j > position)) return scaled;
      return scaled + Broadcast(position_bias[DifferenceOf(shape, query, j)]);
    };
    const auto if_seen = [&](int64_t j, V value, V otherwise) [[gnu::always_inline]] {
      const V key = Broadcast(static_cast<T>(j));
      const V before_end = key < end ? value : otherwise;
      return shape.last_keys ? (key < begin ? otherwise : before_end) : before_end;
    };
    if (shape.kind == AttentionKind::kSilu) {
      for (int64_t j = 0; j < block.keys; ++j) {
        const ValueAndSlope<V> silu = Swish(score(j));
        Save(weights.At(i, j), if_seen(j, silu.value * share, zero));
        Save(slopes.At(i, j), if_seen(j, silu.slope * share, zero));
      }
      continue;
    }
    const V lowest = Broadcast(static_cast<T>(-__builtin_inf()));
    V most = lowest;
    for (int64_t j = 0; j < block.keys; ++j) {
      const V s = score(j);
      Save(weights.At(i, j), s);
      most = AtLeast(most, if_seen(j, s, lowest));
    }
    V sum = zero;
    for (int64_t j = 0; j < block.keys; ++j) {
      const V e = if_seen(j, Exp(Load(weights.At(i, j)) - most), zero);
      Save(weights.At(i, j), e);
      sum += e;
    }
    const V inverse = sum > zero ? Broadcast(T(1)) / sum : zero;
    for (int64_t j = 0; j < block.keys; ++j) {
      Save(weights.At(i, j), Load(weights.At(i, j)) * inverse);
    }
  }
}

// The mask of a block, for a vector of rows.
template <typename T>
void MaskOf(const AttentionShape& shape, const Block<T>& block, const AttentionMask& mask,
            int64_t head, int64_t vector, LaneMatrix<T> factors) {
  constexpr int kStep = kLanes<T> < 8 ? kLanes<T> : 8;  // rows whose words are made at a time
  const auto scale = static_cast<T>(mask.kept.scale);
  for (int64_t i = 0; i < block.queries; ++i) {
    const int64_t first = (head * shape.queries + block.first_query + i) * shape.keys;
    const int64_t end = first + block.keys;
    for (int64_t quad = first / 4; 4 * quad < end; ++quad) {
      for (int lane = 0; lane < kLanes<T>; lane += kStep) {
        const PhiloxVec words =
            WordsOfRows(mask.key, vector * kLanes<T> + lane, static_cast<uint32_t>(quad));
        for (int word = 0; word < 4; ++word) {
          const int64_t feature = 4 * quad + word;
          if (feature < first || feature >= end) continue;
          T* const to = factors.At(i, feature - first) + lane;
          for (int row = 0; row < kStep; ++row) {
            to[row] = words.word[word][row] >= mask.kept.lowest ? scale : T(0);
          }
        }
      }
    }
  }
}

// a *= b.
template <typename T>
void MultiplyBy(const Block<T>& block, LaneMatrix<const T> b, LaneMatrix<T> a) {
  for (int64_t i = 0; i < block.queries; ++i) {
    for (int64_t j = 0; j < block.keys; ++j) {
      Save(a.At(i, j), Load(a.At(i, j)) * Load(b.At(i, j)));
    }
  }
}

// Turns the gradients of a block's weights into those of the products q . k, and adds those of the
// scores to the position bias's. slopes: the weights' derivatives by the scores, or for kSoftmax
// the weights.
template <typename T>
void ScoreGradients(const AttentionShape& shape, const Block<T>& block, LaneMatrix<const T> slopes,
                    LaneMatrix<T> gradients, Panels<T> dposition_bias, int64_t vector) {
  using V = Vec<T>;
  const V scale = Broadcast(static_cast<T>(shape.scale));
  for (int64_t i = 0; i < block.queries; ++i) {
    const int64_t query = block.first_query + i;
    V along = {};
    if (shape.kind == AttentionKind::kSoftmax) {
      for (int64_t j = 0; j < block.keys; ++j) {
        along = Fma(Load(slopes.At(i, j)), Load(gradients.At(i, j)), along);
      }
    }
    for (int64_t j = 0; j < block.keys; ++j) {
      const V d = Load(slopes.At(i, j)) * (Load(gradients.At(i, j)) - along);
      if (dposition_bias.data != nullptr && !(shape.causal && j > shape.position(query))) {
        T* const sum = Line(dposition_bias, vector, DifferenceOf(shape, query, j));
        Save(sum, Load(sum) + d);
      }
      Save(gradients.At(i, j), d * scale);
    }
  }
}

template <typename T>
void Zero(int64_t rows, int64_t columns, LaneMatrix<T> c) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) Save(c.At(i, j), Vec<T>{});
  }
}

template <typename T>
ELASTOR_INLINE LaneMatrix<T> Scratch(const AttentionShape& shape, T* scratch, int64_t number) {
  return {scratch + number * kAttentionQueries * shape.keys * kLanes<T>, shape.keys * kLanes<T>,
          kLanes<T>};
}

template <typename T>
void Forward(const AttentionShape& shape, Panels<const T> q, Panels<const T> k, Panels<const T> v,
             Panels<const T> lengths, const T* position_bias, const AttentionMask& mask,
             Panels<T> y, T* scratch) {
  const int64_t d = shape.width;
  const int64_t dv = shape.value_width;
  const LaneMatrix<T> weights = Scratch(shape, scratch, 0);
  const LaneMatrix<T> slopes = Scratch(shape, scratch, 1);
  const LaneMatrix<T> factors = Scratch(shape, scratch, 3);
  for (int64_t vector = 0; vector < q.panels() * kVectorsPerPanel<T>; ++vector) {
    const Lengths<T> length(lengths, vector, shape);
    for (int64_t head = 0; head < shape.heads; ++head) {
      const auto tokens = [&](auto view, int64_t width, int64_t token) [[gnu::always_inline]] {
        return Tokens(view, vector, shape.heads, width, head, token);
      };
      for (int64_t first = 0; first < shape.queries; first += kAttentionQueries) {
        const Block<T> block(shape, first, length.longest);
        Product<T>(block.queries, block.keys, d, tokens(q, d, first), tokens(k, d, 0).Transposed(),
                   weights, Store::kOverwrite);
        WeightsOf<T>(shape, block, length.lanes, position_bias, weights, slopes);
        if (mask.key.rate > 0) {
          MaskOf<T>(shape, block, mask, head, vector, factors);
          MultiplyBy<T>(block, factors, weights);
        }
        Product<T>(block.queries, dv, block.keys, weights, tokens(v, dv, 0), tokens(y, dv, first),
                   Store::kOverwrite);
      }
    }
  }
}

template <typename T>
void Backward(const AttentionShape& shape, Panels<const T> q, Panels<const T> k, Panels<const T> v,
              Panels<const T> lengths, const T* position_bias, const AttentionMask& mask,
              Panels<const T> dy, Panels<T> dq, Panels<T> dk, Panels<T> dv,
              Panels<T> dposition_bias, T* scratch) {
  const int64_t width = shape.width;
  const int64_t value_width = shape.value_width;
  const LaneMatrix<T> weights = Scratch(shape, scratch, 0);
  const LaneMatrix<T> slopes = Scratch(shape, scratch, 1);
  const LaneMatrix<T> gradients = Scratch(shape, scratch, 2);
  const LaneMatrix<T> factors = Scratch(shape, scratch, 3);
  for (int64_t vector = 0; vector < q.panels() * kVectorsPerPanel<T>; ++vector) {
    const Lengths<T> length(lengths, vector, shape);
    for (int64_t f = 0; f < dposition_bias.features; ++f) {
      Save(Line(dposition_bias, vector, f), Vec<T>{});
    }
    for (int64_t head = 0; head < shape.heads; ++head) {
      const auto tokens = [&](auto view, int64_t w, int64_t token) [[gnu::always_inline]] {
        return Tokens(view, vector, shape.heads, w, head, token);
      };
      const auto dk_head = tokens(dk, width, 0);
      const auto dv_head = tokens(dv, value_width, 0);
      Zero(shape.keys, width, dk_head);
      Zero(shape.keys, value_width, dv_head);
      for (int64_t first = 0; first < shape.queries; first += kAttentionQueries) {
        const Block<T> block(shape, first, length.longest);
        const auto q_block = tokens(q, width, first);
        const auto dy_block = tokens(dy, value_width, first);
        Product<T>(block.queries, block.keys, width, q_block, tokens(k, width, 0).Transposed(),
                   weights, Store::kOverwrite);
        WeightsOf<T>(shape, block, length.lanes, position_bias, weights, slopes);
        Product<T>(block.queries, block.keys, value_width, dy_block,
                   tokens(v, value_width, 0).Transposed(), gradients, Store::kOverwrite);
        if (mask.key.rate > 0) {
          MaskOf<T>(shape, block, mask, head, vector, factors);
          MultiplyBy<T>(block, factors, gradients);
        }
        ScoreGradients<T>(shape, block, shape.kind == AttentionKind::kSilu ? slopes : weights,
                          gradients, dposition_bias, vector);
        if (mask.key.rate > 0) MultiplyBy<T>(block, factors, weights);
        Product<T>(block.keys, value_width, block.queries, weights.Transposed(), dy_block, dv_head,
                   Store::kAdd);
        Product<T>(block.queries, width, block.keys, gradients, tokens(k, width, 0),
                   tokens(dq, width, first), Store::kOverwrite);
        Product<T>(block.keys, width, block.queries, gradients.Transposed(), q_block, dk_head,
                   Store::kAdd);
      }
    }
  }
}

}  // namespace

template <typename T>
constinit const AttentionKernels<T> IsaKernels<T>::attention = {.forward = Forward<T>,
                                                                .backward = Backward<T>};
ELASTOR_INSTANTIATE_KERNELS(attention)

}  // namespace ELASTOR_ISA
}  // namespace elastor
