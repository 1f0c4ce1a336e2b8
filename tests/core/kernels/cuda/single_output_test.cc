#include "core/kernels/cuda/single_output.h"

#include <array>
#include <cmath>

#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

constexpr Shape kOutputShapes[] = {{1, 1, 1}, {5, 1, 390}, {37, 3, 26}, {16, 2, 64}, {9, 1, 33}};

// By the header's order: a chain a lane, then lanes by halves.
float Dot(const float* x, const float* w, int64_t features) {
  std::array<float, 32> lanes{};
  for (int64_t f = 0; f < features; ++f) lanes[f % 32] = std::fma(x[f], w[f], lanes[f % 32]);
  for (int distance = 16; distance > 0; distance /= 2) {
    const std::array<float, 32> before = lanes;
    for (int i = 0; i < 32; ++i) lanes[i] = before[i] + before[i ^ distance];
  }
  return lanes[0];
}

template <typename A>
class SingleOutputTest : public DeviceOpTest<A> {
 protected:
  struct Case {
    explicit Case(const Shape& shape)
        : shape(shape),
          x(RandomValues<A>(shape.size(), 1)),
          w(RandomValues<A>(shape.tokens * shape.features, 2)),
          y(RandomValues<A>(shape.rows * shape.tokens, 3)) {}
    Shape shape;
    std::vector<float> x, w, y;
  };

  Buffer<A> Weights(const Case& c) {
    std::vector<A> w;
    for (const float value : c.w) w.push_back(static_cast<A>(value));
    return elastor::cuda::Upload(this->stream_, w);
  }

  template <typename Out>
  void ExpectForward() {
    for (const Shape& shape : kOutputShapes) {
      const Case c(shape);
      const Buffer<A> w = Weights(c);
      const Buffer<float> bias = elastor::cuda::Upload(this->stream_, std::vector<float>{0.3f});
      for (const bool add : {false, true}) {
        for (const bool with_bias : {false, true}) {
          if (with_bias && shape.tokens > 1) continue;
          std::vector<float> expected;
          for (int64_t i = 0; i < shape.rows * shape.tokens; ++i) {
            float sum = Dot(&c.x[i * shape.features], &c.w[i % shape.tokens * shape.features],
                            shape.features);
            if (add) sum += c.y[i];
            if (with_bias) sum += static_cast<float>(static_cast<Out>(0.3f));
            if (with_bias) sum = sum > 0 ? sum : 0;
            expected.push_back(static_cast<float>(static_cast<Out>(sum)));
          }
          for (const Layout layout : kLayouts) {
            const DeviceView<A> x(this->stream_, shape, layout, c.x);
            DeviceView<Out> y(this->stream_, {shape.rows, shape.tokens, 1}, layout, c.y);
            SingleOutputForward<A, Out>(this->stream_, x.read(), w.data(),
                                        {add, with_bias ? bias.data() : nullptr, with_bias},
                                        y.view());
            ExpectSameBits(y.Read(), expected);
          }
        }
      }
    }
  }
};
TYPED_TEST_SUITE(SingleOutputTest, ElementTypes);

TYPED_TEST(SingleOutputTest, ForwardInTheStatedOrder) {
  this->template ExpectForward<TypeParam>();
  this->template ExpectForward<float>();
}

TYPED_TEST(SingleOutputTest, BackwardIsOneProductAnElement) {
  using A = TypeParam;
  for (const Shape& shape : kOutputShapes) {
    const typename TestFixture::Case c(shape);
    const Buffer<A> w = this->Weights(c);
    for (const bool add : {false, true}) {
      std::vector<float> expected;
      for (int64_t i = 0; i < shape.size(); ++i) {
        float d = c.y[i / shape.features] * c.w[i % (shape.tokens * shape.features)];
        if (add) d += c.x[i];
        expected.push_back(d);
      }
      for (const Layout layout : kLayouts) {
        const DeviceView<A> dy(this->stream_, {shape.rows, shape.tokens, 1}, layout, c.y);
        DeviceView<A> dx(this->stream_, shape, layout, c.x);
        SingleOutputBackward<A>(this->stream_, dy.read(), w.data(), add, dx.view());
        ExpectSameBits(dx.Read(), Rounded<A>(expected));
      }
    }
  }
}

// The weights of one map, whose input's gradient is wanted token by token.
TYPED_TEST(SingleOutputTest, BackwardCutIntoTokens) {
  using A = TypeParam;
  const typename TestFixture::Case c({7, 4, 10});
  const Buffer<A> w = this->Weights(c);
  const std::vector<float> one(c.y.begin(), c.y.begin() + c.shape.rows);
  const DeviceView<A> dy(this->stream_, {c.shape.rows, 1, 1}, Layout::kRowMajor, one);
  DeviceView<A> dx(this->stream_, c.shape, Layout::kTokenMajor);
  Activations<const A> same_for_all = dy.read();
  same_for_all.token_stride = 0;
  SingleOutputBackward<A>(this->stream_, same_for_all, w.data(), false, dx.view());
  std::vector<float> expected;
  for (int64_t i = 0; i < c.shape.size(); ++i) expected.push_back(one[i / 40] * c.w[i % 40]);
  ExpectSameBits(dx.Read(), Rounded<A>(expected));
}

TYPED_TEST(SingleOutputTest, GradientInTheStatedOrder) {
  using A = TypeParam;
  for (const LeafShape& leaves : {LeafShape{1, 1}, {3, 8}, {2, 37}, {4, 3}}) {
    for (const auto& [tokens, features] : {std::pair<int64_t, int64_t>{1, 390}, {3, 26}}) {
      const typename TestFixture::Case c({leaves.rows(), tokens, features});
      std::vector<float> expected;  // [tokens][leaves][features]
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t l = 0; l < leaves.leaves; ++l) {
          for (int64_t f = 0; f < features; ++f) {
            std::array<float, 8> s{};
            for (int64_t r = 0; r < leaves.leaf_rows; ++r) {
              const int64_t run = (l * leaves.leaf_rows + r) * tokens + t;
              s[r % 8] = std::fma(c.y[run], c.x[run * features + f], s[r % 8]);
            }
            expected.push_back(((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])));
          }
        }
      }
      for (const Layout layout : kLayouts) {
        const DeviceView<A> dy(this->stream_, {leaves.rows(), tokens, 1}, layout, c.y);
        const DeviceView<A> x(this->stream_, c.shape, layout, c.x);
        const Buffer<float> dw(&this->stream_, tokens * leaves.leaves * features);
        SingleOutputGradient<A>(this->stream_, leaves, dy.read(), x.read(), dw.data(),
                                leaves.leaves * features, features);
        ExpectSameBits(Download(this->stream_, dw), expected);
      }
    }
  }
}

}  // namespace
}  // namespace elastor::cuda
