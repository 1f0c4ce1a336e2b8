#include "core/kernels/cuda/elementwise.h"

#include "core/kernels/elementwise.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

// Packs of 16 bytes, of two elements and of one; a single row; a single feature.
constexpr Shape kShapes[] = {{5, 3, 26},  {1, 4, 33}, {7, 1, 1},  {3, 2, 8},
                             {4, 1, 780}, {6, 3, 3},  {64, 2, 16}};

template <typename A>
class ElementwiseTest : public DeviceOpTest<A> {
 protected:
  // body(shape, layout of the inputs, layout of the outputs)
  template <typename Body>
  void ForEachCase(Body body) {
    for (const Shape& shape : kShapes) {
      for (const Layout from : kLayouts) {
        for (const Layout to : kLayouts) {
          SCOPED_TRACE(testing::Message()
                       << shape.rows << " " << shape.tokens << " " << shape.features << ", layouts "
                       << static_cast<int>(from) << static_cast<int>(to));
          body(shape, from, to);
        }
      }
    }
  }
};
TYPED_TEST_SUITE(ElementwiseTest, ElementTypes);

TYPED_TEST(ElementwiseTest, CopyBetweenLayouts) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Layout from, Layout to) {
    const std::vector<float> values = RandomValues<A>(shape.size(), 1);
    const DeviceView<A> x(this->stream_, shape, from, values);
    DeviceView<A> y(this->stream_, shape, to);
    Copy<A>(this->stream_, x.view(), y.view());
    ExpectSameBits(y.Read(), values);
  });
}

TYPED_TEST(ElementwiseTest, Add) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Layout from, Layout to) {
    const int64_t columns = shape.tokens * shape.features;
    const std::vector<float> a_values = RandomValues<A>(shape.size(), 1);
    const std::vector<float> b_values = RandomValues<A>(shape.size(), 2);
    HostPanels expected(shape.rows, columns, a_values);
    elastor::Add<float>(expected.read(), HostPanels(shape.rows, columns, b_values).read(),
                        expected.view());
    const DeviceView<A> a(this->stream_, shape, from, a_values);
    DeviceView<A> b(this->stream_, shape, to, b_values);
    Add<A>(this->stream_, a.view(), b.view(), b.view());
    ExpectSameBits(b.Read(), Rounded<A>(expected.Read()));
  });
}

TYPED_TEST(ElementwiseTest, FillASlice) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Layout from, Layout) {
    std::vector<float> values = RandomValues<A>(shape.size(), 1);
    DeviceView<A> x(this->stream_, shape, from, values);
    const int64_t count = (shape.features + 1) / 2;
    const int64_t begin = shape.features - count;
    Fill<A>(this->stream_, 0.75f, x.view().Slice(begin, count));
    for (int64_t i = 0; i < shape.size(); ++i) {
      if (i % shape.features >= begin) values[i] = 0.75f;
    }
    ExpectSameBits(x.Read(), values);
  });
}

TYPED_TEST(ElementwiseTest, MeanPoolAndBack) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Layout from, Layout to) {
    const int64_t columns = shape.tokens * shape.features;
    const Shape pooled{shape.rows, 1, shape.features};
    const std::vector<float> values = RandomValues<A>(shape.size(), 1);
    HostPanels expected(shape.rows, shape.features);
    elastor::MeanPool<float>(shape.tokens, shape.features,
                             HostPanels(shape.rows, columns, values).read(), expected.view());
    const DeviceView<A> x(this->stream_, shape, from, values);
    DeviceView<A> y(this->stream_, pooled, to);
    MeanPool<A>(this->stream_, x.view(), y.view());
    ExpectSameBits(y.Read(), Rounded<A>(expected.Read()));

    const std::vector<float> dy_values = RandomValues<A>(pooled.size(), 2);
    HostPanels expected_dx(shape.rows, columns);
    elastor::MeanPoolBackward<float>(shape.tokens, shape.features,
                                     HostPanels(shape.rows, shape.features, dy_values).read(),
                                     expected_dx.view());
    const DeviceView<A> dy(this->stream_, pooled, from, dy_values);
    DeviceView<A> dx(this->stream_, shape, to);
    MeanPoolBackward<A>(this->stream_, dy.view(), dx.view());
    ExpectSameBits(dx.Read(), Rounded<A>(expected_dx.Read()));
  });
}

TYPED_TEST(ElementwiseTest, BlockTranspose) {
  using A = TypeParam;
  struct Blocks {
    int64_t tokens;
    int64_t width;
  };
  // Single elements, odd blocks, blocks of packs, and a row too long for shared memory.
  for (const auto& [tokens, width] :
       {Blocks{5, 5}, {26, 26}, {3, 15}, {4, 64}, {32, 32}, {113, 113}}) {
    for (const Layout layout : kLayouts) {
      const Shape shape{5, 1, tokens * width};
      const std::vector<float> values = RandomValues<A>(shape.size(), 1);
      HostPanels expected(shape.rows, shape.features);
      elastor::BlockTranspose<float>(
          tokens, width, HostPanels(shape.rows, shape.features, values).read(), expected.view());
      const DeviceView<A> x(this->stream_, shape, layout, values);
      DeviceView<A> y(this->stream_, shape, layout);
      BlockTranspose<A>(this->stream_, tokens, width, x.view(), y.view());
      ExpectSameBits(y.Read(), expected.Read());
    }
  }
}

TYPED_TEST(ElementwiseTest, TransposeFeatures) {
  using A = TypeParam;
  constexpr int64_t kRows = 150;  // several blocks
  constexpr int64_t kA = 7;
  constexpr int64_t kB = 10;
  const Shape shape{kRows, 1, kA * kB};
  const std::vector<float> values = RandomValues<A>(shape.size(), 1);
  const DeviceView<A> x(this->stream_, shape, Layout::kSpread, values);
  DeviceView<A> y(this->stream_, shape, Layout::kRowMajor);
  TransposeFeatures<A>(this->stream_, kA, kB, x.view(), y.view());
  const std::vector<float> transposed = y.Read();
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t a = 0; a < kA; ++a) {
      for (int64_t b = 0; b < kB; ++b) {
        ASSERT_EQ(transposed[row * kA * kB + b * kA + a], values[row * kA * kB + a * kB + b]);
      }
    }
  }
}

TYPED_TEST(ElementwiseTest, NothingToDo) {
  using A = TypeParam;
  const Shape shape{2, 3, 4};
  const std::vector<float> values = RandomValues<A>(shape.size(), 1);
  const DeviceView<A> other(this->stream_, shape, Layout::kRowMajor);
  DeviceView<A> memory(this->stream_, shape, Layout::kRowMajor, values);
  for (A* const data : {static_cast<A*>(nullptr), memory.view().data}) {
    const auto none = Activations<A>::RowMajor(data, 0, 3, 4);
    Copy<A>(this->stream_, Activations<A>::RowMajor(other.view().data, 0, 3, 4), none);
    Fill<A>(this->stream_, 1, none);
  }
  ExpectSameBits(memory.Read(), values);
}

class RoundTest : public testing::Test {
 protected:
  Stream stream_;
};

TEST_F(RoundTest, RoundsToNearestEven) {
  for (const int64_t count : {1, 6, 64, 1003}) {
    const std::vector<float> values = RandomValues<float>(count, 3);
    Buffer<float> from = Upload(stream_, values);
    Buffer<BFloat16> to(&stream_, count);
    Round(stream_, from.data(), to.data(), count);
    const std::vector<BFloat16> rounded = Download(stream_, to);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(rounded[i].bits, BFloat16(values[i]).bits);
    }
  }
}

}  // namespace
}  // namespace elastor::cuda
