#include "core/kernels/cpu/vec_math.h"
#include "core/kernels/cuda/elementwise.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

constexpr Shape kGateShapes[] = {{5, 3, 26}, {1, 2, 33}, {6, 1, 1}, {9, 4, 16}, {3, 1, 104}};
constexpr Activation kActivations[] = {
    Activation::kIdentity, Activation::kRelu,    Activation::kGelu,     Activation::kSwish,
    Activation::kTanh,     Activation::kSigmoid, Activation::kLeakyRelu};
constexpr float kScale = 4;

struct Point {
  float value;
  float slope;
};

// The CPU's function at one point.
Point Act(Activation activation, float x) {
  const auto first = [](const elastor::ValueAndSlope<FloatVec>& v) {
    return Point{v.value[0], v.slope[0]};
  };
  switch (activation) {
    case Activation::kRelu:
      return first(elastor::ReluAndSlope(Broadcast(x)));
    case Activation::kGelu:
      return first(elastor::Gelu(Broadcast(x)));
    case Activation::kSwish:
      return first(elastor::Swish(Broadcast(x)));
    case Activation::kLeakyRelu:
      return first(elastor::LeakyReluAndSlope(Broadcast(x), kLeakySlope));
    case Activation::kTanh:
      return first(elastor::TanhAndSlope(Broadcast(x)));
    case Activation::kSigmoid:
      return first(elastor::SigmoidAndSlope(Broadcast(x)));
    case Activation::kIdentity:
      break;
  }
  return {x, 1};
}

template <typename A>
class GatesTest : public DeviceOpTest<A> {
 protected:
  // body(shape, activation, layout)
  template <typename Body>
  void ForEachCase(Body body) {
    for (const Shape& shape : kGateShapes) {
      for (const Activation activation : kActivations) {
        for (const Layout layout : kLayouts) {
          SCOPED_TRACE(testing::Message()
                       << shape.rows << " " << shape.tokens << " " << shape.features
                       << ", activation " << static_cast<int>(activation) << ", layout "
                       << static_cast<int>(layout));
          body(shape, activation, layout);
        }
      }
    }
  }
  // Values [rows][tokens][parts * hidden]: part `part` of element i of [rows][tokens][hidden].
  static float& Part(std::vector<float>& z, int64_t hidden, int64_t parts, int64_t part,
                     int64_t i) {
    return z[i / hidden * parts * hidden + part * hidden + i % hidden];
  }
};
TYPED_TEST_SUITE(GatesTest, ElementTypes);

TYPED_TEST(GatesTest, BiasActivation) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Activation activation, Layout layout) {
    const int64_t columns = shape.tokens * shape.features;
    const std::vector<float> values = RandomValues<A>(shape.size(), 1, kScale);
    // One element more, so that it can begin anywhere.
    const std::vector<float> biases = RandomValues<float>(columns + 1, 2);
    const Buffer<float> bias = Upload(this->stream_, biases);
    for (const bool shared : {false, true}) {
      for (const int64_t offset : {0, 1}) {
        std::vector<float> z_expected(shape.size());
        std::vector<float> y_expected(shape.size());
        for (int64_t i = 0; i < shape.size(); ++i) {
          const int64_t b = offset + i % (shared ? shape.features : columns);
          z_expected[i] = values[i] + biases[b];
          y_expected[i] = Act(activation, z_expected[i]).value;
        }
        DeviceView<A> z(this->stream_, shape, layout, values);
        DeviceView<A> y(this->stream_, shape, Layout::kRowMajor);
        BiasActivation<A>(this->stream_, activation, bias.data() + offset, shared, z.view(),
                          y.view());
        ExpectSameBits(z.Read(), Rounded<A>(z_expected));
        ExpectSameBits(y.Read(), Rounded<A>(y_expected));

        DeviceView<A> in_place(this->stream_, shape, layout, values);
        BiasActivation<A>(this->stream_, activation, bias.data() + offset, shared, in_place.view(),
                          in_place.view());
        ExpectSameBits(in_place.Read(), Rounded<A>(y_expected));
      }
    }
  });
}

TYPED_TEST(GatesTest, ActivationAloneAndBackward) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Activation activation, Layout layout) {
    const std::vector<float> values = RandomValues<A>(shape.size(), 1, kScale);
    const std::vector<float> dy_values = RandomValues<A>(shape.size(), 2);
    std::vector<float> y_expected(shape.size());
    std::vector<float> dz_expected(shape.size());
    for (int64_t i = 0; i < shape.size(); ++i) {
      const Point act = Act(activation, values[i]);
      y_expected[i] = act.value;
      dz_expected[i] = dy_values[i] * act.slope;
    }
    DeviceView<A> z(this->stream_, shape, layout, values);
    DeviceView<A> y(this->stream_, shape, layout);
    BiasActivation<A>(this->stream_, activation, nullptr, false, z.view(), y.view());
    ExpectSameBits(z.Read(), values);
    ExpectSameBits(y.Read(), Rounded<A>(y_expected));
    DeviceView<A> d(this->stream_, shape, Layout::kTokenMajor, dy_values);
    ActivationBackward<A>(this->stream_, activation, z.view(), d.view(), d.view());
    ExpectSameBits(d.Read(), Rounded<A>(dz_expected));
  });
}

TYPED_TEST(GatesTest, GatedUnit) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Activation activation, Layout layout) {
    const int64_t hidden = shape.features;
    const Shape z_shape{shape.rows, shape.tokens, 2 * hidden};
    std::vector<float> values = RandomValues<A>(z_shape.size(), 1, kScale);
    const std::vector<float> dh_values = RandomValues<A>(shape.size(), 2);
    std::vector<float> h_expected(shape.size());
    std::vector<float> dz_expected(z_shape.size());
    for (int64_t i = 0; i < shape.size(); ++i) {
      const float q = this->Part(values, hidden, 2, 1, i);
      const Point act = Act(activation, this->Part(values, hidden, 2, 0, i));
      h_expected[i] = act.value * q;
      this->Part(dz_expected, hidden, 2, 0, i) = dh_values[i] * (q * act.slope);
      this->Part(dz_expected, hidden, 2, 1, i) = dh_values[i] * act.value;
    }
    DeviceView<A> z(this->stream_, z_shape, layout, values);
    DeviceView<A> h(this->stream_, shape, layout);
    GatedUnit<A>(this->stream_, activation, z.view(), h.view());
    ExpectSameBits(h.Read(), Rounded<A>(h_expected));
    const DeviceView<A> dh(this->stream_, shape, Layout::kRowMajor, dh_values);
    GatedUnitBackward<A>(this->stream_, activation, z.view(), dh.view(), z.view());
    ExpectSameBits(z.Read(), Rounded<A>(dz_expected));
  });
}

TYPED_TEST(GatesTest, GatedSumUnit) {
  using A = TypeParam;
  this->ForEachCase([&](const Shape& shape, Activation activation, Layout layout) {
    const int64_t hidden = shape.features;
    const Shape z_shape{shape.rows, shape.tokens, 3 * hidden};
    std::vector<float> values = RandomValues<A>(z_shape.size(), 1, kScale);
    const std::vector<float> biases = RandomValues<float>(shape.tokens * 3 * hidden, 3);
    const std::vector<float> dh_values = RandomValues<A>(shape.size(), 2);
    std::vector<float> h_expected(shape.size());
    std::vector<float> dz_expected(z_shape.size());
    for (int64_t i = 0; i < shape.size(); ++i) {
      const auto with_bias = [&](int64_t part) {
        const int64_t token = i / hidden % shape.tokens;
        return this->Part(values, hidden, 3, part, i) +
               biases[(token * 3 + part) * hidden + i % hidden];
      };
      const Point act = Act(activation, with_bias(1));
      const float u = with_bias(0) + act.value;
      const float v = with_bias(2);
      const float du = dh_values[i] * v;
      h_expected[i] = u * v;
      this->Part(dz_expected, hidden, 3, 0, i) = du;
      this->Part(dz_expected, hidden, 3, 1, i) = du * act.slope;
      this->Part(dz_expected, hidden, 3, 2, i) = dh_values[i] * u;
    }
    const Buffer<float> bias = Upload(this->stream_, biases);
    DeviceView<A> z(this->stream_, z_shape, layout, values);
    DeviceView<A> h(this->stream_, shape, layout);
    GatedSumUnit<A>(this->stream_, activation, bias.data(), z.view(), h.view());
    ExpectSameBits(h.Read(), Rounded<A>(h_expected));
    const DeviceView<A> dh(this->stream_, shape, layout, dh_values);
    GatedSumUnitBackward<A>(this->stream_, activation, bias.data(), z.view(), dh.view(), z.view());
    ExpectSameBits(z.Read(), Rounded<A>(dz_expected));
  });
}

}  // namespace
}  // namespace elastor::cuda
