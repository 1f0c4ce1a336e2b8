#include "core/base/instantiate.h"
#include "core/base/random.h"
#include "core/kernels/cuda/element_loop.h"
#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/dropout.h"

namespace elastor::cuda {
namespace {

// An item is a row and a quad, the four neighbouring features that one Philox block serves.
// Features count through the tokens of a row.
template <typename A>
struct DropoutOp {
  DeviceDropout dropout;
  uint32_t lowest_kept;
  float scale;
  Activations<A> x;
  FastDivisor by_features;  // of a token
  bool packed;              // every quad is four elements that can be read at once

  // The element of feature `index` of a row, null behind the last.
  __device__ A* Element(int64_t row, int64_t index) const {
    const uint32_t token = by_features.Divide(static_cast<uint32_t>(index));
    if (token >= x.tokens) return nullptr;
    return At(x, {row, token, index - static_cast<int64_t>(token) * by_features.divisor()});
  }

  template <int kCount>
  using Inputs = Values<4>;
  template <int kCount>
  __device__ Values<4> Load(const Index& index) const {
    const int64_t first = 4 * index.feature;
    if (packed) return LoadValues<4>(Element(index.row, first));
    Values<4> values;
    for (int i = 0; i < 4; ++i) {
      const A* const element = Element(index.row, first + i);
      values.v[i] = element == nullptr ? 0.0f : static_cast<float>(*element);
    }
    return values;
  }
  template <int kCount>
  __device__ void Store(const Index& index, Values<4> values) const {
    const auto row = static_cast<uint64_t>(*dropout.first_row + dropout.local_row[index.row]);
    const PhiloxBlock words =
        Philox(dropout.key, {static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32),
                             *dropout.step, static_cast<uint32_t>(index.feature)});
    for (int i = 0; i < 4; ++i) {
      values.v[i] = words[i] >= lowest_kept ? values.v[i] * scale : 0.0f;
    }
    const int64_t first = 4 * index.feature;
    if (packed) {
      StoreValues<4>(Element(index.row, first), values);
      return;
    }
    for (int i = 0; i < 4; ++i) {
      A* const element = Element(index.row, first + i);
      if (element != nullptr) *element = static_cast<A>(values.v[i]);
    }
  }
};

}  // namespace

template <typename A>
void Dropout(Stream& stream, const DeviceDropout& dropout, Activations<A> x) {
  CHECK(dropout.rate >= 0 && dropout.rate < 1);
  if (x.rows == 0 || x.tokens * x.features == 0) return;
  const KeptWords kept = KeptWordsOf(dropout.rate);
  if (kept.scale == 0) return Fill(stream, 0.0f, x);
  if (x.token_stride == x.features) {
    x = {x.data, x.rows, 1, x.tokens * x.features, x.row_stride, 0};
  }
  const bool packed = ShapeOf(x).With(x).HasPacks(4);
  const DropoutOp<A> op{
      dropout, kept.lowest, static_cast<float>(kept.scale), x, FastDivisor(x.features), packed};
  const int64_t quads = (x.tokens * x.features + 3) / 4;
  LaunchElementKernel<1, 2>(stream, ElementLoop(x.rows, 1, quads, false), op);
}

ELASTOR_INSTANTIATE(Dropout, float, BFloat16)

}  // namespace elastor::cuda
