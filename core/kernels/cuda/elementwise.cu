#include "core/base/instantiate.h"
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

template void Copy<float>(Stream&, Activations<const float>, Activations<float>);
template void Copy<BFloat16>(Stream&, Activations<const BFloat16>, Activations<BFloat16>);
ELASTOR_INSTANTIATE(Add, float, BFloat16)
ELASTOR_INSTANTIATE(Multiply, float, BFloat16)
ELASTOR_INSTANTIATE(AddTo, float, BFloat16)
ELASTOR_INSTANTIATE(SumPool, float, BFloat16)
ELASTOR_INSTANTIATE(SumPoolBackward, float, BFloat16)
ELASTOR_INSTANTIATE(Fill, float, BFloat16)
ELASTOR_INSTANTIATE(MeanPool, float, BFloat16)
ELASTOR_INSTANTIATE(MeanPoolBackward, float, BFloat16)

}  // namespace elastor::cuda
