#include <cmath>

#include "core/base/instantiate.h"
#include "core/cuda/math.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/row_matrices.h"

namespace elastor::cuda {
namespace {

// Element (i, j) of a matrix in the features of a row.
template <typename A>
__device__ inline float Element(const RowMatrix<const A>& matrix, int64_t row, int64_t i,
                                int64_t j) {
  return static_cast<float>(
      *At(matrix.view, matrix.transposed ? Index{row, j, i} : Index{row, i, j}));
}

// A thread computes one element of c.
template <typename A>
struct RowMatrixProductOp {
  RowMatrix<const A> a;
  RowMatrix<const A> b;
  int64_t terms;
  Activations<const A> addend;
  Activations<A> c;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    static_assert(kCount == 1);
    Values<1> sum = {};
    for (int64_t t = 0; t < terms; ++t) {
      sum.v[0] = std::fma(Element(a, index.row, index.token, t),
                          Element(b, index.row, t, index.feature), sum.v[0]);
    }
    if (addend.data != nullptr) sum.v[0] += LoadValues<1>(At(addend, index)).v[0];
    return sum;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& sum) const {
    StoreValues<kCount>(At(c, index), sum);
  }
};

// exp(s - the largest score) of a row, and their sum.
template <typename A>
struct Softmax {
  Activations<const A> scores;
  int64_t row;
  float most;
  float sum = 0;

  __device__ Softmax(const Activations<const A>& scores, int64_t row) : scores(scores), row(row) {
    most = Score(0);
    for (int64_t t = 1; t < scores.features; ++t) most = AtLeast(Score(t), most);
    for (int64_t t = 0; t < scores.features; ++t) sum += Exp(Score(t) - most);
  }
  __device__ float Score(int64_t t) const { return static_cast<float>(*At(scores, {row, 0, t})); }
  __device__ float Share(int64_t t) const { return Exp(Score(t) - most) / sum; }
};

// A thread computes one element of y, of another view alike: share * x.
template <typename A>
struct SoftmaxGateOp {
  Activations<const A> x;
  Activations<const A> scores;
  Activations<A> y;

  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    const float share = Softmax<A>(scores, index.row).Share(index.token);
    Values<kCount> values = LoadValues<kCount>(At(x, index));
    for (int i = 0; i < kCount; ++i) values.v[i] *= share;
    return values;
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& values) const {
    StoreValues<kCount>(At(y, index), values);
  }
};

// A thread computes the gradients of all scores of a row.
template <typename A>
struct ScoreGradientOp {
  Activations<const A> x;
  Activations<const A> scores;
  Activations<const A> dy;
  Activations<A> dscores;

  __device__ float Product(int64_t row, int64_t t) const {
    float sum = 0;
    for (int64_t f = 0; f < x.features; ++f) {
      sum = std::fma(static_cast<float>(*At(dy, {row, t, f})),
                     static_cast<float>(*At(x, {row, t, f})), sum);
    }
    return sum;
  }
  template <int kCount>
  using Inputs = Values<kCount>;
  template <int kCount>
  __device__ Values<kCount> Load(const Index& index) const {
    static_assert(kCount == 1);
    const Softmax<A> softmax(scores, index.row);
    float mean = 0;
    for (int64_t t = 0; t < x.tokens; ++t) {
      mean = std::fma(softmax.Share(t), Product(index.row, t), mean);
    }
    return {{softmax.Share(index.feature) * (Product(index.row, index.feature) - mean)}};
  }
  template <int kCount>
  __device__ void Store(const Index& index, const Values<kCount>& values) const {
    StoreValues<kCount>(At(dscores, index), values);
  }
};

// One element an item.
template <typename A, typename Op>
void ForEachSingleElement(Stream& stream, const Activations<A>& y, const Op& op) {
  LoopShape shape = ShapeOf(y);
  shape.With(y);
  if (shape.empty()) return;
  LaunchElementKernel<1, 1>(stream, shape.Loop(1), op);
}

}  // namespace

template <typename A>
void MultiplyRowMatrices(Stream& stream, const RowMatrix<const A>& a, const RowMatrix<const A>& b,
                         Activations<const A> addend, Activations<A> c) {
  CHECK(a.view.rows == c.rows && b.view.rows == c.rows);
  CHECK(a.rows() == c.tokens && b.columns() == c.features && a.columns() == b.rows());
  ForEachSingleElement(stream, c, RowMatrixProductOp<A>{a, b, a.columns(), addend, c});
}

template <typename A>
void SoftmaxGate(Stream& stream, Activations<const A> x, Activations<const A> scores,
                 Activations<A> y) {
  CHECK(scores.rows == x.rows && scores.tokens == 1 && scores.features == x.tokens);
  ForEachElement<kLargestPack<A>>(stream, Merge::kNone, ShapeOf(y).With(x).With(y),
                                  SoftmaxGateOp<A>{x, scores, y});
}

template <typename A>
void SoftmaxGateBackward(Stream& stream, Activations<const A> x, Activations<const A> scores,
                         Activations<const A> dy, Activations<A> dx, Activations<A> dscores) {
  CHECK(scores.rows == x.rows && scores.tokens == 1 && scores.features == x.tokens);
  CHECK(dscores.rows == x.rows && dscores.tokens == 1 && dscores.features == x.tokens);
  ForEachSingleElement(stream, dscores, ScoreGradientOp<A>{x, scores, dy, dscores});
  SoftmaxGate<A>(stream, dy, scores, dx);
}

ELASTOR_INSTANTIATE(MultiplyRowMatrices, float, BFloat16)
ELASTOR_INSTANTIATE(SoftmaxGate, float, BFloat16)
ELASTOR_INSTANTIATE(SoftmaxGateBackward, float, BFloat16)

}  // namespace elastor::cuda
