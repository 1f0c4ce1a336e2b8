#include "core/base/instantiate.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

template <typename From, typename To>
struct CopyOp {
  Activations<const From> x;
  Activations<To> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    return LoadValues<kCount>(At(x, index));
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& in) const {
    StoreValues<kCount>(At(y, index), in);
  }
};

struct Sum {
  static __device__ float Of(float a, float b) { return a + b; }
};
struct Product {
  static __device__ float Of(float a, float b) { return a * b; }
};

struct Gated {
  static __device__ float Of(float a, float b) { return a * Sigmoid(b); }
};

template <typename A, typename B, typename Y, typename Combined>
struct PairOp {
  Activations<const A> a;
  Activations<const B> b;
  Activations<Y> y;

  template <int kCount>
  struct Inputs {
    Values<kCount> a;
    Values<kCount> b;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index& index) const {
    return {LoadValues<kCount>(At(a, index)), LoadValues<kCount>(At(b, index))};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>& in) const {
    Values<kCount> combined;
    for (int i = 0; i < kCount; ++i) combined.v[i] = Combined::Of(in.a.v[i], in.b.v[i]);
    StoreValues<kCount>(At(y, index), combined);
  }
};

template <typename A>
struct SigmoidGateBackwardOp {
  Activations<const A> a;
  Activations<const A> b;
  Activations<const A> dy;
  Activations<A> da;
  Activations<A> db;

  template <int kCount>
  struct Inputs {
    Values<kCount> a;
    Values<kCount> b;
    Values<kCount> dy;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index& index) const {
    return {LoadValues<kCount>(At(a, index)), LoadValues<kCount>(At(b, index)),
            LoadValues<kCount>(At(dy, index))};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>& in) const {
    Values<kCount> of_a, of_b;
    for (int i = 0; i < kCount; ++i) {
      const ValueAndSlope gate = SigmoidAndSlope(in.b.v[i]);
      of_a.v[i] = in.dy.v[i] * gate.value;
      of_b.v[i] = in.dy.v[i] * in.a.v[i] * gate.slope;
    }
    StoreValues<kCount>(At(da, index), of_a);
    StoreValues<kCount>(At(db, index), of_b);
  }
};

template <typename A>
struct FillOp {
  float constant;
  Activations<A> y;

  template <int kCount>
  struct Inputs {};
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index&) const {
    return {};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>&) const {
    Values<kCount> values;
    for (int i = 0; i < kCount; ++i) values.v[i] = constant;
    StoreValues<kCount>(At(y, index), values);
  }
};

// y at (row, feature) = share * sum of x at (row, token, feature) over tokens.
template <typename A>
struct MeanPoolOp {
  Activations<const A> x;
  float share;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    const A* const first = At(x, index);
    Values<kCount> sum = LoadValues<kCount>(first);
    for (int64_t t = 1; t < x.tokens; ++t) {
      const Values<kCount> token = LoadValues<kCount>(first + t * x.token_stride);
      for (int i = 0; i < kCount; ++i) sum.v[i] += token.v[i];
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, Values<kCount> sum) const {
    for (int i = 0; i < kCount; ++i) sum.v[i] *= share;
    StoreValues<kCount>(At(y, index), sum);
  }
};

// y at feature t = the sum of x's token t.
template <typename A>
struct SumPoolOp {
  Activations<const A> x;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    Values<kCount> sum;
    for (int i = 0; i < kCount; ++i) {
      const A* const first = At(x, {index.row, index.feature + i, 0});
      sum.v[i] = static_cast<float>(first[0]);
      for (int64_t f = 1; f < x.features; ++f) sum.v[i] += static_cast<float>(first[f]);
    }
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    StoreValues<kCount>(At(y, index), sum);
  }
};

// dx at every feature of token t = dy at feature t.
template <typename A>
struct SumPoolBackwardOp {
  Activations<const A> dy;
  Activations<A> dx;

  template <int kCount>
  using Inputs = Values<1>;
  template <int kCount>
  __device__ Values<1> Load(const Index& index) const {
    return LoadValues<1>(At(dy, {index.row, 0, index.token}));
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<1>& d) const {
    Values<kCount> all;
    for (int i = 0; i < kCount; ++i) all.v[i] = d.v[0];
    StoreValues<kCount>(At(dx, index), all);
  }
};

// dx at every token = share * dy, a view that repeats its one token.
template <typename A>
struct MeanPoolBackwardOp {
  Activations<const A> dy;
  float share;
  Activations<A> dx;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    return LoadValues<kCount>(At(dy, index));
  }
  template <int kCount>
  __device__ void Store(const Index& index, Values<kCount> d) const {
    for (int i = 0; i < kCount; ++i) d.v[i] *= share;
    StoreValues<kCount>(At(dx, index), d);
  }
};

// y at (row, feature) = sum over tokens t of x_t (x_1 + .. + x_{t-1}).
template <typename A>
struct FactorizationPoolOp {
  Activations<const A> x;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    const A* const first = At(x, index);
    Values<kCount> before = LoadValues<kCount>(first);
    Values<kCount> products;
    for (int i = 0; i < kCount; ++i) products.v[i] = 0;
    for (int64_t t = 1; t < x.tokens; ++t) {
      const Values<kCount> token = LoadValues<kCount>(first + t * x.token_stride);
      for (int i = 0; i < kCount; ++i) {
        products.v[i] += token.v[i] * before.v[i];
        before.v[i] += token.v[i];
      }
    }
    return products;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& products) const {
    StoreValues<kCount>(At(y, index), products);
  }
};

// dx at every token t = dy (sum over tokens of x - x_t).
template <typename A>
struct FactorizationPoolBackwardOp {
  Activations<const A> x;
  Activations<const A> dy;
  Activations<A> dx;

  template <int kCount>
  struct Inputs {
    Values<kCount> sum;
    Values<kCount> dy;
  };
  template <int kCount>
  __device__ Inputs<kCount> Load(const Index& index) const {
    const A* const first = At(x, index);
    Values<kCount> sum = LoadValues<kCount>(first);
    for (int64_t t = 1; t < x.tokens; ++t) {
      const Values<kCount> token = LoadValues<kCount>(first + t * x.token_stride);
      for (int i = 0; i < kCount; ++i) sum.v[i] += token.v[i];
    }
    return {sum, LoadValues<kCount>(At(dy, index))};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Inputs<kCount>& in) const {
    for (int64_t t = 0; t < x.tokens; ++t) {
      const Index token = {index.row, t, index.feature};
      Values<kCount> values = LoadValues<kCount>(At(x, token));
      for (int i = 0; i < kCount; ++i) values.v[i] = in.dy.v[i] * (in.sum.v[i] - values.v[i]);
      StoreValues<kCount>(At(dx, token), values);
    }
  }
};

// The place of element (i, j), i < j, in the upper triangle of a matrix of `size` columns.
__device__ inline int64_t TriangleIndex(int64_t size, int64_t i, int64_t j) {
  return i * (2 * size - i - 1) / 2 + j - i - 1;
}

// A thread takes elements of the matrix and writes those above the diagonal.
template <typename A>
struct UpperTriangleOp {
  Activations<const A> x;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    return LoadValues<kCount>(At(x, index));
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& in) const {
    for (int i = 0; i < kCount; ++i) {
      const int64_t column = index.feature + i;
      if (column <= index.token) continue;
      const int64_t place = TriangleIndex(x.features, index.token, column);
      StoreValues<1>(At(y, {index.row, 0, place}), Values<1>{{in.v[i]}});
    }
  }
};

template <typename A>
struct UpperTriangleBackwardOp {
  Activations<const A> dy;
  Activations<A> dx;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    Values<kCount> values;
    for (int i = 0; i < kCount; ++i) {
      const int64_t column = index.feature + i;
      const int64_t place = TriangleIndex(dx.features, index.token, column);
      values.v[i] =
          column > index.token ? static_cast<float>(*At(dy, {index.row, 0, place})) : 0.0f;
    }
    return values;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& in) const {
    StoreValues<kCount>(At(dx, index), in);
  }
};

// y = bias + the sum of a row's features.
template <typename A, typename Out>
struct LogitSumOp {
  Activations<const A> x;
  const float* bias;
  Activations<Out> y;

  template <int kCount>
  using Inputs = Values<1>;
  template <int kCount>
  __device__ Values<1> Load(const Index& index) const {
    const A* const first = At(x, {index.row, 0, 0});
    float sum = static_cast<float>(first[0]);
    for (int64_t f = 1; f < x.features; ++f) sum += static_cast<float>(first[f]);
    return {{sum}};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<1>& sum) const {
    StoreValues<1>(At(y, index), Values<1>{{sum.v[0] + bias[0]}});
  }
};

// log(exp(-a) + exp(-a - b)).
__device__ inline float LogOfFirst(float a, float b) {
  return (b < 0 ? -b : 0.0f) + Log1pOfUnit(Exp(-(b < 0 ? -b : b))) - a;
}

// A thread takes a row, which is one token, whatever the packs are.
template <typename A, typename Out>
struct JointLogitOp {
  Activations<const A> x;
  Activations<Out> y;

  template <int kCount>
  using Inputs = Values<2>;
  template <int kCount>
  __device__ Values<2> Load(const Index& index) const {
    const A* const first = At(x, {index.row, 0, 0});
    return {{static_cast<float>(first[0]), static_cast<float>(first[1])}};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<2>& in) const {
    const float a = in.v[0], b = in.v[1];
    const float first = LogOfFirst(a, b);
    const float difference = first + b;
    const float log_term = Log1pOfUnit(Exp(-(difference < 0 ? -difference : difference)));
    StoreValues<1>(At(y, {index.row, 0, 0}), Values<1>{{a}});
    StoreValues<1>(At(y, {index.row, 0, 1}),
                   Values<1>{{-((difference < 0 ? -b : first) + log_term)}});
  }
};

template <typename A>
struct JointLogitBackwardOp {
  Activations<const A> x;
  Activations<const A> dy;
  Activations<A> dx;

  template <int kCount>
  using Inputs = Values<4>;
  template <int kCount>
  __device__ Values<4> Load(const Index& index) const {
    const A* const logits = At(x, {index.row, 0, 0});
    const A* const gradients = At(dy, {index.row, 0, 0});
    return {{static_cast<float>(logits[0]), static_cast<float>(logits[1]),
             static_cast<float>(gradients[0]), static_cast<float>(gradients[1])}};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<4>& in) const {
    const float b = in.v[1], both = in.v[3];
    const float share = Sigmoid(LogOfFirst(in.v[0], b) + b);
    StoreValues<1>(At(dx, {index.row, 0, 0}), Values<1>{{in.v[2] + both * share}});
    StoreValues<1>(At(dx, {index.row, 0, 1}),
                   Values<1>{{both * (share * Sigmoid(-b) + (1.0f - share))}});
  }
};

// A thread takes a row.
template <typename A, typename Out>
struct MeanLogitOp {
  Activations<const A> x;
  float share;
  Activations<Out> y;

  template <int kCount>
  using Inputs = Values<1>;
  template <int kCount>
  __device__ Values<1> Load(const Index& index) const {
    const A* const first = At(x, {index.row, 0, 0});
    float sum = static_cast<float>(first[0]);
    for (int64_t f = 1; f < x.features; ++f) sum += static_cast<float>(first[f]);
    return {{sum * share}};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<1>& mean) const {
    StoreValues<1>(At(y, {index.row, 0, 0}), mean);
    for (int64_t f = 0; f < x.features; ++f) {
      StoreValues<1>(At(y, {index.row, 0, f + 1}), LoadValues<1>(At(x, {index.row, 0, f})));
    }
  }
};

template <typename A>
struct MeanLogitBackwardOp {
  Activations<const A> dy;
  float share;
  Activations<A> dx;

  template <int kCount>
  using Inputs = Values<2>;
  template <int kCount>
  __device__ Values<2> Load(const Index& index) const {
    const A* const first = At(dy, {index.row, 0, 0});
    return {{static_cast<float>(first[0]), static_cast<float>(first[index.feature + 1])}};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<2>& d) const {
    StoreValues<1>(At(dx, index), Values<1>{{d.v[1] + d.v[0] * share}});
  }
};

}  // namespace

template <typename A>
void Copy(Stream& stream, Activations<const A> x, Activations<A> y) {
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll, ShapeOf(y).With(x).With(y),
                                  CopyOp<A, A>{x, y});
}

template <typename A>
void Add(Stream& stream, Activations<const A> a, Activations<const A> b, Activations<A> y) {
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll, ShapeOf(y).With(a).With(b).With(y),
                                  PairOp<A, A, A, Sum>{a, b, y});
}

template <typename A>
void AddTo(Stream& stream, Activations<const A> x, Activations<float> y) {
  ForEachElement<kLargestFloatPack>(stream, Merge::kAll, ShapeOf(y).With(x).With(y),
                                    PairOp<float, A, float, Sum>{y, x, y});
}

template <typename A>
void Multiply(Stream& stream, Activations<const A> a, Activations<const A> b, Activations<A> y) {
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll, ShapeOf(y).With(a).With(b).With(y),
                                  PairOp<A, A, A, Product>{a, b, y});
}

template <typename A>
void SigmoidGate(Stream& stream, Activations<const A> a, Activations<const A> b, Activations<A> y) {
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll, ShapeOf(y).With(a).With(b).With(y),
                                  PairOp<A, A, A, Gated>{a, b, y});
}

template <typename A>
void SigmoidGateBackward(Stream& stream, Activations<const A> a, Activations<const A> b,
                         Activations<const A> dy, Activations<A> da, Activations<A> db) {
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll,
                                  ShapeOf(da).With(a).With(b).With(dy).With(db).With(da),
                                  SigmoidGateBackwardOp<A>{a, b, dy, da, db});
}

template <typename A>
void Fill(Stream& stream, float constant, Activations<A> y) {
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll, ShapeOf(y).With(y), FillOp<A>{constant, y});
}

void Round(Stream& stream, const float* from, BFloat16* to, int64_t count) {
  const auto x = Activations<const float>::RowMajor(from, 1, 1, count);
  const auto y = Activations<BFloat16>::RowMajor(to, 1, 1, count);
  ForEachElement<kLargestFloatPack>(stream, Merge::kAll, ShapeOf(y).With(x).With(y),
                                    CopyOp<float, BFloat16>{x, y});
}

template <typename A>
void MeanPool(Stream& stream, Activations<const A> x, Activations<A> y) {
  CHECK(x.tokens > 0 && y.tokens == 1);
  CHECK(x.rows == y.rows && x.features == y.features);
  const float share = 1.0f / static_cast<float>(x.tokens);
  LoopShape shape = ShapeOf(y);
  shape.With(x.data, sizeof(A), x.row_stride, 0);
  // All tokens allow the packs that the first two allow.
  if (x.tokens > 1) shape.With(x.data + x.token_stride, sizeof(A), x.row_stride, 0);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, shape.With(y), MeanPoolOp<A>{x, share, y});
}

template <typename A>
void MeanPoolBackward(Stream& stream, Activations<const A> dy, Activations<A> dx) {
  CHECK_EQ(dy.tokens, 1);
  const float share = 1.0f / static_cast<float>(dx.tokens);
  dy.tokens = dx.tokens;
  dy.token_stride = 0;
  ForEachElement<kLargestPack<A>>(stream, Merge::kAll, ShapeOf(dx).With(dy).With(dx),
                                  MeanPoolBackwardOp<A>{dy, share, dx});
}

template <typename A>
void SumPool(Stream& stream, Activations<const A> x, Activations<A> y) {
  CHECK(x.rows == y.rows && x.tokens == y.features && y.tokens == 1);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, ShapeOf(y).With(y), SumPoolOp<A>{x, y});
}

template <typename A>
void SumPoolBackward(Stream& stream, Activations<const A> dy, Activations<A> dx) {
  CHECK(dx.rows == dy.rows && dx.tokens == dy.features && dy.tokens == 1);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, ShapeOf(dx).With(dx),
                                  SumPoolBackwardOp<A>{dy, dx});
}

template <typename A>
void FactorizationPool(Stream& stream, Activations<const A> x, Activations<A> y) {
  CHECK(x.rows == y.rows && x.features == y.features && y.tokens == 1);
  LoopShape shape = ShapeOf(y);
  shape.With(x.data, sizeof(A), x.row_stride, 0);
  // All tokens allow the packs that the first two allow.
  if (x.tokens > 1) shape.With(x.data + x.token_stride, sizeof(A), x.row_stride, 0);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, shape.With(y),
                                  FactorizationPoolOp<A>{x, y});
}

template <typename A>
void FactorizationPoolBackward(Stream& stream, Activations<const A> x, Activations<const A> dy,
                               Activations<A> dx) {
  CHECK(x.rows == dx.rows && x.tokens == dx.tokens && x.features == dx.features);
  LoopShape shape = ShapeOf(dy).With(dy);
  for (const int64_t t : {int64_t{0}, x.tokens > 1 ? int64_t{1} : int64_t{0}}) {
    shape.With(x.data + t * x.token_stride, sizeof(A), x.row_stride, 0);
    shape.With(dx.data + t * dx.token_stride, sizeof(A), dx.row_stride, 0);
  }
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, shape,
                                  FactorizationPoolBackwardOp<A>{x, dy, dx});
}

template <typename A>
void UpperTriangle(Stream& stream, Activations<const A> x, Activations<A> y) {
  CHECK(x.rows == y.rows && x.tokens == x.features && y.tokens == 1);
  CHECK_EQ(y.features, x.tokens * (x.tokens - 1) / 2);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, ShapeOf(x).With(x),
                                  UpperTriangleOp<A>{x, y});
}

template <typename A>
void UpperTriangleBackward(Stream& stream, Activations<const A> dy, Activations<A> dx) {
  CHECK(dx.rows == dy.rows && dx.tokens == dx.features && dy.tokens == 1);
  CHECK_EQ(dy.features, dx.tokens * (dx.tokens - 1) / 2);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, ShapeOf(dx).With(dx),
                                  UpperTriangleBackwardOp<A>{dy, dx});
}

template <typename A, typename Out>
void MeanLogit(Stream& stream, Activations<const A> x, Activations<Out> y) {
  CHECK(x.rows == y.rows && x.tokens == 1 && y.tokens == 1 && y.features == x.features + 1);
  const float share = 1.0f / static_cast<float>(x.features);
  const Activations<Out> rows = y.Slice(0, 1);
  ForEachElement<1>(stream, Merge::kNone, ShapeOf(rows).With(rows),
                    MeanLogitOp<A, Out>{x, share, y});
}

template <typename A>
void MeanLogitBackward(Stream& stream, Activations<const A> dy, Activations<A> dx) {
  CHECK(dx.rows == dy.rows && dx.tokens == 1 && dy.features == dx.features + 1);
  const float share = 1.0f / static_cast<float>(dx.features);
  ForEachElement<1>(stream, Merge::kNone, ShapeOf(dx).With(dx),
                    MeanLogitBackwardOp<A>{dy, share, dx});
}

// The loop runs over the first feature of every row.
template <typename A, typename Out>
void JointLogit(Stream& stream, Activations<const A> x, Activations<Out> y) {
  CHECK(x.rows == y.rows && x.tokens == 1 && y.tokens == 1 && x.features == 2 && y.features == 2);
  const Activations<Out> rows = y.Slice(0, 1);
  ForEachElement<1>(stream, Merge::kNone, ShapeOf(rows).With(rows), JointLogitOp<A, Out>{x, y});
}

template <typename A>
void JointLogitBackward(Stream& stream, Activations<const A> x, Activations<const A> dy,
                        Activations<A> dx) {
  CHECK(x.rows == dx.rows && x.tokens == 1 && dx.tokens == 1 && dx.features == 2);
  const Activations<A> rows = dx.Slice(0, 1);
  ForEachElement<1>(stream, Merge::kNone, ShapeOf(rows).With(rows),
                    JointLogitBackwardOp<A>{x, dy, dx});
}

template <typename A, typename Out>
void LogitSum(Stream& stream, Activations<const A> x, const float* bias, Activations<Out> y) {
  CHECK(x.rows == y.rows && x.tokens == 1 && y.tokens == 1 && y.features == 1);
  ForEachElement<1>(stream, Merge::kNone, ShapeOf(y).With(y), LogitSumOp<A, Out>{x, bias, y});
}

template void JointLogit<float>(Stream&, Activations<const float>, Activations<float>);
template void JointLogit<BFloat16>(Stream&, Activations<const BFloat16>, Activations<BFloat16>);
template void JointLogit<BFloat16>(Stream&, Activations<const BFloat16>, Activations<float>);
template void MeanLogit<float>(Stream&, Activations<const float>, Activations<float>);
template void MeanLogit<BFloat16>(Stream&, Activations<const BFloat16>, Activations<BFloat16>);
template void MeanLogit<BFloat16>(Stream&, Activations<const BFloat16>, Activations<float>);
template void LogitSum<float>(Stream&, Activations<const float>, const float*, Activations<float>);
template void LogitSum<BFloat16>(Stream&, Activations<const BFloat16>, const float*,
                                 Activations<BFloat16>);
template void LogitSum<BFloat16>(Stream&, Activations<const BFloat16>, const float*,
                                 Activations<float>);
template void Copy<float>(Stream&, Activations<const float>, Activations<float>);
template void Copy<BFloat16>(Stream&, Activations<const BFloat16>, Activations<BFloat16>);
ELASTOR_INSTANTIATE(Add, float, BFloat16)
ELASTOR_INSTANTIATE(Multiply, float, BFloat16)
ELASTOR_INSTANTIATE(SigmoidGate, float, BFloat16)
ELASTOR_INSTANTIATE(SigmoidGateBackward, float, BFloat16)
ELASTOR_INSTANTIATE(AddTo, float, BFloat16)
ELASTOR_INSTANTIATE(SumPool, float, BFloat16)
ELASTOR_INSTANTIATE(SumPoolBackward, float, BFloat16)
ELASTOR_INSTANTIATE(Fill, float, BFloat16)
ELASTOR_INSTANTIATE(MeanPool, float, BFloat16)
ELASTOR_INSTANTIATE(MeanLogitBackward, float, BFloat16)
ELASTOR_INSTANTIATE(JointLogitBackward, float, BFloat16)
ELASTOR_INSTANTIATE(FactorizationPool, float, BFloat16)
ELASTOR_INSTANTIATE(FactorizationPoolBackward, float, BFloat16)
ELASTOR_INSTANTIATE(UpperTriangle, float, BFloat16)
ELASTOR_INSTANTIATE(UpperTriangleBackward, float, BFloat16)
ELASTOR_INSTANTIATE(MeanPoolBackward, float, BFloat16)

}  // namespace elastor::cuda
