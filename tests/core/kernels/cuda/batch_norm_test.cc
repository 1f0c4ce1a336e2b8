#include "core/kernels/batch_norm.h"

#include <algorithm>

#include "core/kernels/cuda/norm.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

constexpr double kEpsilon = 1e-5;
const LeafShape kLeaves{5, 70};
const std::vector<int32_t> kCounts = {70, 1, 0, 33, 66};

// Leaves of [leaf_rows][features], rows behind a leaf's count being padding.
template <typename A>
class BatchNormTest : public DeviceOpTest<A> {
 protected:
  // The real rows of a leaf.
  static HostPanels LeafPanels(const std::vector<float>& values, int64_t leaf, int64_t features) {
    const auto begin = values.begin() + leaf * kLeaves.leaf_rows * features;
    return HostPanels(kCounts[leaf], features, {begin, begin + kCounts[leaf] * features});
  }
  static std::vector<float> Zeros(int64_t features) {
    return std::vector<float>(kLeaves.leaves * features);
  }
};
TYPED_TEST_SUITE(BatchNormTest, ElementTypes);

TYPED_TEST(BatchNormTest, IsTheCpusPerLeaf) {
  using A = TypeParam;
  Stream& stream = this->stream_;
  for (const int64_t features : {1, 26, 33, 64}) {
    for (const Layout layout : {Layout::kRowMajor, Layout::kSpread}) {
      const Shape shape{kLeaves.rows(), 1, features};
      const std::vector<float> x_values = RandomValues<A>(shape.size(), 1, 3);
      const std::vector<float> dy_values = RandomValues<A>(shape.size(), 2);
      const std::vector<float> gain_values = RandomValues<float>(features, 3);
      const std::vector<float> bias_values = RandomValues<float>(features, 4);
      std::vector<float> mean_expected = this->Zeros(features);
      std::vector<float> variance_expected = mean_expected, scale_expected = mean_expected;
      std::vector<float> dgain_expected = mean_expected, dbias_expected = mean_expected;
      std::vector<float> y_expected(shape.size()), dx_expected(shape.size());
      for (int64_t l = 0; l < kLeaves.leaves; ++l) {
        if (kCounts[l] == 0) {
          std::fill_n(scale_expected.begin() + l * features, features,
                      static_cast<float>(1 / std::sqrt(kEpsilon)));
          continue;
        }
        HostPanels x = this->LeafPanels(x_values, l, features);
        HostPanels dy = this->LeafPanels(dy_values, l, features);
        HostPanels y(kCounts[l], features);
        HostPanels dx(kCounts[l], features);
        float* const mean = &mean_expected[l * features];
        float* const scale = &scale_expected[l * features];
        elastor::BatchStatistics<float>(kEpsilon, x.read(), mean, &variance_expected[l * features],
                                        scale);
        elastor::BatchNormForward<float>(x.read(), mean, scale, gain_values.data(),
                                         bias_values.data(), y.view());
        elastor::BatchNormBackward<float>(x.read(), mean, scale, gain_values.data(), dy.read(),
                                          dx.view(), &dgain_expected[l * features],
                                          &dbias_expected[l * features], Store::kOverwrite);
        const int64_t first = l * kLeaves.leaf_rows * features;
        std::ranges::copy(Rounded<A>(y.Read()), y_expected.begin() + first);
        std::ranges::copy(Rounded<A>(dx.Read()), dx_expected.begin() + first);
      }

      const DeviceView<A> x(stream, shape, layout, x_values);
      DeviceView<A> y(stream, shape, layout);
      DeviceView<A> d(stream, shape, Layout::kRowMajor, dy_values);
      const Buffer<int32_t> counts = Upload(stream, kCounts);
      const Buffer<float> gain = Upload(stream, gain_values);
      const Buffer<float> bias = Upload(stream, bias_values);
      const int64_t statistics = kLeaves.leaves * features;
      const Buffer<float> mean(&stream, statistics), variance(&stream, statistics);
      const Buffer<float> scale(&stream, statistics);
      const Buffer<float> dgain(&stream, statistics), dbias(&stream, statistics);
      BatchStatistics<A>(stream, kEpsilon, kLeaves, counts.data(), x.read(), mean.data(),
                         variance.data(), scale.data());
      BatchNormForward<A>(stream, kLeaves, x.read(), mean.data(), scale.data(), features,
                          gain.data(), bias.data(), y.view());
      BatchNormBackward<A>(stream, kLeaves, counts.data(), x.read(), mean.data(), scale.data(),
                           gain.data(), d.read(), d.view(), dgain.data(), dbias.data(), features);
      ExpectSameBits(Download(stream, mean), mean_expected);
      ExpectSameBits(Download(stream, variance), variance_expected);
      ExpectSameBits(Download(stream, scale), scale_expected);
      ExpectSameBits(Download(stream, dgain), dgain_expected);
      ExpectSameBits(Download(stream, dbias), dbias_expected);
      ExpectSameBits(d.Read(), dx_expected);  // 0 in padding
      std::vector<float> forward = y.Read();
      for (int64_t i = 0; i < shape.size(); ++i) {
        const int64_t row = i / features;
        const bool real = row % kLeaves.leaf_rows < kCounts[row / kLeaves.leaf_rows];
        if (real) continue;
        ASSERT_TRUE(std::isfinite(forward[i]));
        forward[i] = 0;
      }
      ExpectSameBits(forward, y_expected);
    }
  }
}

TYPED_TEST(BatchNormTest, RunningStatistics) {
  using A = TypeParam;
  Stream& stream = this->stream_;
  constexpr int64_t kFeatures = 26;
  const Shape shape{kLeaves.rows(), 1, kFeatures};
  const std::vector<float> values = RandomValues<A>(shape.size(), 1, 3);
  const std::vector<float> mean_values = RandomValues<float>(kFeatures, 2);
  std::vector<float> variance_values = RandomValues<float>(kFeatures, 3);
  for (float& v : variance_values) v = std::fabs(v);
  const std::vector<float> gain_values = RandomValues<float>(kFeatures, 4);
  const std::vector<float> bias_values = RandomValues<float>(kFeatures, 5);
  std::vector<float> scale_expected(kFeatures);
  elastor::BatchNormScale<float>(kEpsilon, kFeatures, variance_values.data(),
                                 scale_expected.data());
  HostPanels panels(shape.rows, kFeatures, values);
  elastor::BatchNormForward<float>(panels.read(), mean_values.data(), scale_expected.data(),
                                   gain_values.data(), bias_values.data(), panels.view());
  const Buffer<float> mean = Upload(stream, mean_values);
  const Buffer<float> variance = Upload(stream, variance_values);
  const Buffer<float> scale(&stream, kFeatures);
  const Buffer<float> gain = Upload(stream, gain_values);
  const Buffer<float> bias = Upload(stream, bias_values);
  DeviceView<A> x(stream, shape, Layout::kRowMajor, values);
  BatchNormScale(stream, kEpsilon, kFeatures, variance.data(), scale.data());
  BatchNormForward<A>(stream, kLeaves, x.read(), mean.data(), scale.data(), 0, gain.data(),
                      bias.data(), x.view());
  ExpectSameBits(Download(stream, scale), scale_expected);
  ExpectSameBits(x.Read(), Rounded<A>(panels.Read()));
}

// The arithmetic of BatchNormLayer::DeliverStatistic: value * factor * share in double.
TEST(BatchNormDeliverTest, SharesOfTheBatch) {
  SetCanonicalFloatingPoint();
  Stream stream;
  constexpr int64_t kFeatures = 300;
  constexpr int64_t kLeafStride = 310;
  constexpr int64_t kBatchRows = 170;
  constexpr float kUntouched = 5;
  const std::vector<float> values = RandomValues<float>(kLeaves.leaves * kFeatures, 1);
  const Buffer<float> device_values = Upload(stream, values);
  const Buffer<int32_t> counts = Upload(stream, kCounts);
  const Buffer<int64_t> batch_rows = Upload<int64_t>(stream, {kBatchRows});
  for (const bool unbiased : {false, true}) {
    std::vector<float> expected(kLeaves.leaves * kLeafStride, kUntouched);
    for (int64_t l = 0; l < kLeaves.leaves; ++l) {
      const double rows = kCounts[l];
      const double factor = unbiased && rows > 1 ? rows / (rows - 1) : 1;
      for (int64_t f = 0; f < kFeatures; ++f) {
        expected[l * kLeafStride + f] =
            rows == 0 ? 0.0f
                      : static_cast<float>(values[l * kFeatures + f] * factor *
                                           (rows / static_cast<double>(kBatchRows)));
      }
    }
    const Buffer<float> out =
        Upload(stream, std::vector<float>(kLeaves.leaves * kLeafStride, kUntouched));
    BatchNormDeliver(stream, kLeaves, counts.data(), batch_rows.data(), kFeatures, unbiased,
                     device_values.data(), out.data(), kLeafStride);
    ExpectSameBits(Download(stream, out), expected);
  }
}

}  // namespace
}  // namespace elastor::cuda
