#include "core/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include "core/base/random.h"
#include "core/cuda/math.h"
#include "gtest/gtest.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

using Kind = AttentionKind;

struct Case {
  AttentionShape shape;
  bool lengths;
  bool position_bias;
  double dropout = 0;
};
void PrintTo(const Case& c, std::ostream* out) {
  const AttentionShape& s = c.shape;
  *out << (s.kind == Kind::kSilu ? "SiLU " : "softmax ") << s.queries << " x " << s.keys
       << (s.causal ? " causal" : "") << (s.last_keys ? " last" : "")
       << (c.lengths ? " lengths" : "") << (c.position_bias ? " bias" : "")
       << (c.dropout > 0 ? " dropout" : "");
}

std::vector<Case> Cases() {
  // Queries in several blocks, tiles of every size, values wider than keys.
  const auto shape = [](Kind kind, int64_t queries, int64_t keys, bool causal) {
    return AttentionShape{.kind = kind,
                          .queries = queries,
                          .keys = keys,
                          .heads = 2,
                          .width = 5,
                          .value_width = 7,
                          .scale = 0.75,
                          .causal = causal};
  };
  std::vector<Case> cases;
  for (const Kind kind : {Kind::kSoftmax, Kind::kSilu}) {
    cases.push_back({shape(kind, 10, 10, false), false, false});
    cases.push_back({shape(kind, 1, 9, false), true, false});
    cases.push_back({shape(kind, 7, 3, false), true, true});
    cases.push_back({shape(kind, 53, 53, true), true, true});
    cases.push_back({shape(kind, 7, 9, false), true, false, 0.25});
    cases.push_back({shape(kind, 27, 27, true), false, true, 0.5});
    cases.push_back({shape(kind, 5, 14, true), true, true});
    cases.push_back({shape(kind, 9, 31, true), true, true, 0.25});
    cases.back().shape.last_keys = true;
    cases.push_back({shape(kind, 3, 11, false), true, true});
    cases.back().shape.last_keys = true;
    cases.push_back({shape(kind, 26, 26, true), false, true});
  }
  cases.back().shape.heads = 1;
  return cases;
}

float Exp(float x) { return cuda::Exp(x); }
double Exp(double x) { return std::exp(x); }
cuda::ValueAndSlope Silu(float x) { return cuda::Swish(x); }
struct ExactValueAndSlope {
  double value, slope;
};
ExactValueAndSlope Silu(double x) {
  const double e = std::exp(-std::fabs(x));
  const double sigmoid = (x < 0 ? e : 1.0) / (1.0 + e);
  const double value = x * sigmoid;
  return {value, std::fma(value, 1 - sigmoid, sigmoid)};
}

constexpr int64_t kRows = 19;
constexpr float kPoison = 1e15f;  // in tokens that are not seen

template <typename T>
struct Run {
  AttentionShape shape;
  PanelBuffer<T> q, k, v, dy, lengths, y, dq, dk, dv, dbias;
  std::vector<T> bias;
  bool with_lengths, with_bias;
  // Rows whose numbers need 33 bits are among them.
  DropoutKey dropout = {.key = 77, .step = 5, .first_row = (int64_t{1} << 32) - 3};

  explicit Run(const Case& c, int64_t rows = kRows)
      : shape(c.shape),
        q(rows, shape.queries * shape.heads * shape.width, 1),
        k(rows, shape.keys * shape.heads * shape.width, 2),
        v(rows, shape.keys * shape.heads * shape.value_width, 3),
        dy(rows, shape.queries * shape.heads * shape.value_width, 4),
        lengths(rows, 1, 5),
        y(rows, dy.view().features, 6),
        dq(rows, q.view().features, 7),
        dk(rows, k.view().features, 8),
        dv(rows, v.view().features, 9),
        dbias(rows, shape.differences(), 10),
        bias(RandomNumbers<T>(shape.differences(), 11)),
        with_lengths(c.lengths),
        with_bias(c.position_bias) {
    dropout.rate = c.dropout;
    dy.ZeroPadding();
    // Times a weight below a half it is -0.
    for (int64_t j = 0; j < shape.keys; ++j) {
      v.view().At(2, j * shape.heads * shape.value_width) = -std::numeric_limits<T>::denorm_min();
    }
    for (int64_t row = 0; row < lengths.view().panels() * kPanelRows; ++row) {
      // 0, all of them and more; in the second panel at most a third.
      lengths.view().At(row, 0) = static_cast<T>(row < kPanelRows ? (row * 5) % (shape.keys + 2)
                                                                  : row % (shape.keys / 3 + 1));
      for (int64_t j = 0; j < shape.keys; ++j) {
        if (FirstKey(row) <= j && j < FirstKey(row) + Length(row)) continue;
        for (auto* tokens : {&k, &v}) {
          const int64_t width = tokens->view().features / shape.keys;
          for (int64_t f = 0; f < width; ++f) tokens->view().At(row, j * width + f) = kPoison;
        }
      }
    }
  }

  int64_t Length(int64_t row) {
    if (!with_lengths) return shape.keys;
    return std::min(static_cast<int64_t>(lengths.view().At(row, 0)), shape.keys);
  }
  int64_t FirstKey(int64_t row) { return shape.last_keys ? shape.keys - Length(row) : 0; }
  T Mask(int64_t row, int64_t head, int64_t query, int64_t key) const {
    const int64_t feature = (head * shape.queries + query) * shape.keys + key;
    const auto epoch_row = static_cast<uint64_t>(dropout.first_row + row);
    const PhiloxBlock words = Philox(
        dropout.key, {static_cast<uint32_t>(epoch_row), static_cast<uint32_t>(epoch_row >> 32),
                      dropout.step, static_cast<uint32_t>(feature / 4)});
    return words[feature % 4] * 0x1p-32 >= dropout.rate ? static_cast<T>(1 / (1 - dropout.rate))
                                                        : 0;
  }
  void Kernels() {
    const Panels<const T> length = with_lengths ? lengths.read() : Panels<const T>();
    const T* const b = with_bias ? bias.data() : nullptr;
    AttentionForward<T>(shape, q.read(), k.read(), v.read(), length, b, dropout, y.view());
    AttentionBackward<T>(shape, q.read(), k.read(), v.read(), length, b, dropout, dy.read(),
                         dq.view(), dk.view(), dv.view(), with_bias ? dbias.view() : Panels<T>());
  }
};

// One row by the text of attention.h, a number at a time.
template <typename T>
struct Reference {
  std::vector<T> y, dq, dk, dv, dbias;

  Reference(Run<T>* run, int64_t row) {
    const AttentionShape& s = run->shape;
    const int64_t d = s.width, e = s.value_width;
    const auto at = [&](PanelBuffer<T>& view, int64_t token, int64_t head, int64_t width,
                        int64_t f) {
      return view.view().At(row, (token * s.heads + head) * width + f);
    };
    y.resize(run->y.view().features);
    dq.resize(run->q.view().features);
    dk.resize(run->k.view().features);
    dv.resize(run->v.view().features);
    dbias.resize(s.differences());
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t begin = run->FirstKey(row);
        int64_t end = begin + run->Length(row);
        const int64_t position = i + s.keys - s.queries;
        if (s.causal) end = begin <= position && position < end ? position + 1 : begin;
        const int64_t seen = end - begin;
        std::vector<T> weights(seen), slopes(seen), gradients(seen);
        for (int64_t n = 0; n < seen; ++n) {
          const int64_t j = begin + n;
          T dot = 0;
          for (int64_t f = 0; f < d; ++f) {
            dot = std::fma(at(run->q, i, h, d, f), at(run->k, j, h, d, f), dot);
          }
          weights[n] = dot * static_cast<T>(s.scale);
          if (run->with_bias) weights[n] += run->bias[DifferenceOf(s, i, j)];
        }
        if (s.kind == Kind::kSilu) {
          const T share = T(1) / static_cast<T>(s.keys);
          for (int64_t j = 0; j < seen; ++j) {
            const auto silu = Silu(weights[j]);
            weights[j] = silu.value * share;
            slopes[j] = silu.slope * share;
          }
        } else if (seen > 0) {
          const T most = *std::max_element(weights.begin(), weights.end());
          T sum = 0;
          for (T& w : weights) sum += w = Exp(w - most);
          for (T& w : weights) w *= T(1) / sum;
          slopes = weights;
        }
        for (int64_t n = 0; n < seen; ++n) weights[n] *= run->Mask(row, h, i, begin + n);
        T along = 0;
        for (int64_t n = 0; n < seen; ++n) {
          const int64_t j = begin + n;
          for (int64_t f = 0; f < e; ++f) {
            gradients[n] = std::fma(at(run->dy, i, h, e, f), at(run->v, j, h, e, f), gradients[n]);
          }
          gradients[n] = gradients[n] * run->Mask(row, h, i, j);
          if (s.kind == Kind::kSoftmax) along = std::fma(slopes[n], gradients[n], along);
        }
        for (int64_t n = 0; n < seen; ++n) {
          const int64_t j = begin + n;
          gradients[n] = slopes[n] * (gradients[n] - along);
          dbias[DifferenceOf(s, i, j)] += gradients[n];
          gradients[n] *= static_cast<T>(s.scale);
          const auto add = [&](std::vector<T>& sums, int64_t token, int64_t width, T factor,
                               PanelBuffer<T>& x, int64_t other) {
            for (int64_t f = 0; f < width; ++f) {
              T& sum = sums[(token * s.heads + h) * width + f];
              sum = std::fma(factor, at(x, other, h, width, f), sum);
            }
          };
          add(y, i, e, weights[n], run->v, j);
          add(dv, j, e, weights[n], run->dy, i);
          add(dq, i, d, gradients[n], run->k, j);
          add(dk, j, d, gradients[n], run->q, i);
        }
      }
    }
  }
};

template <typename T>
class AttentionTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionTest, Types);

template <typename T>
void ExpectRow(PanelBuffer<T>& found, int64_t row, const std::vector<T>& expected,
               const char* what) {
  for (size_t f = 0; f < expected.size(); ++f) {
    ASSERT_EQ(found.view().At(row, f), expected[f]) << what << ", row " << row << ", " << f;
    ASSERT_FALSE(expected[f] == 0 && std::signbit(found.view().At(row, f))) << what;
  }
}

// Every bit, whatever lies behind a row's length and in the rows beside it.
TYPED_TEST(AttentionTest, IsTheDocumentedOrder) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    Run<TypeParam> run(c);
    run.Kernels();
    for (int64_t row = 0; row < kRows; ++row) {
      const Reference<TypeParam> expected(&run, row);
      ExpectRow(run.y, row, expected.y, "y");
      ExpectRow(run.dq, row, expected.dq, "dq");
      ExpectRow(run.dk, row, expected.dk, "dk");
      ExpectRow(run.dv, row, expected.dv, "dv");
      if (c.position_bias) ExpectRow(run.dbias, row, expected.dbias, "dbias");
    }
  }
}

TYPED_TEST(AttentionTest, PaddedRowsHaveNoGradient) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    Run<TypeParam> run(c);
    run.Kernels();
    for (auto* gradient : {&run.dq, &run.dk, &run.dv, &run.dbias}) {
      if (gradient == &run.dbias && !c.position_bias) continue;
      for (int64_t row = kRows; row < 2 * kPanelRows; ++row) {
        for (int64_t f = 0; f < gradient->view().features; ++f) {
          ASSERT_EQ(gradient->view().At(row, f), 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace elastor
