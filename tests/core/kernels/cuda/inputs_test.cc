// Ops that see where in the batch a row is: dropout, loss, numeric fields.

#include <algorithm>
#include <limits>

#include "core/base/random.h"
#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/elementwise.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

// Leaves of device rows: leaf l has counts[l] rows, in order, the rest is padding (-1).
struct DeviceRows {
  LeafShape shape;
  std::vector<int32_t> local_row;

  DeviceRows(int64_t leaf_rows, const std::vector<int32_t>& counts)
      : shape{static_cast<int64_t>(counts.size()), leaf_rows} {
    int32_t next = 0;
    for (const int32_t count : counts) {
      for (int64_t i = 0; i < leaf_rows; ++i) local_row.push_back(i < count ? next++ : -1);
    }
  }
  int64_t real_rows() const {
    return std::count_if(local_row.begin(), local_row.end(), [](int32_t r) { return r >= 0; });
  }
};

template <typename A>
class InputsTest : public DeviceOpTest<A> {};
TYPED_TEST_SUITE(InputsTest, ElementTypes);

TYPED_TEST(InputsTest, DropoutMasksAreTheCpus) {
  using A = TypeParam;
  constexpr int64_t kFirstRow = (int64_t{5} << 32) - 3;  // both words of the counter change
  constexpr uint32_t kStep = 17;
  const uint64_t key = MakeRandomKey(1, RandomPurpose::kDropout, 7);
  for (const Shape& shape : {Shape{9, 3, 26}, {9, 1, 32}, {5, 4, 8}, {6, 1, 1}, {3, 5, 3}}) {
    for (const double rate : {0.0, 0.3, 1 - 0x1p-33}) {
      for (const Layout layout : kLayouts) {
        const int64_t columns = shape.tokens * shape.features;
        const std::vector<float> values = RandomValues<A>(shape.size(), 1);
        // Device rows hold rows in another order than the CPU's panels.
        std::vector<int32_t> local_row(shape.rows);
        for (int64_t r = 0; r < shape.rows; ++r)
          local_row[r] = static_cast<int32_t>(shape.rows - 1 - r);
        std::vector<float> by_row(shape.size());
        for (int64_t i = 0; i < shape.size(); ++i) {
          by_row[local_row[i / columns] * columns + i % columns] = values[i];
        }
        HostPanels panels(shape.rows, columns, by_row);
        elastor::Dropout<float>({key, kStep, kFirstRow, rate}, panels.read(), panels.view());
        const std::vector<float> kept = panels.Read();
        std::vector<float> expected(shape.size());
        for (int64_t i = 0; i < shape.size(); ++i) {
          expected[i] = kept[local_row[i / columns] * columns + i % columns];
        }
        const Buffer<uint32_t> step = Upload<uint32_t>(this->stream_, {kStep});
        const Buffer<int64_t> first_row = Upload<int64_t>(this->stream_, {kFirstRow});
        const Buffer<int32_t> device_local_row = Upload(this->stream_, local_row);
        DeviceView<A> x(this->stream_, shape, layout, values);
        const DeviceDropout dropout{key, rate, step.data(), first_row.data(),
                                    device_local_row.data()};
        Dropout<A>(this->stream_, dropout, x.view());
        ExpectSameBits(x.Read(), Rounded<A>(expected));
      }
    }
  }
}

TYPED_TEST(InputsTest, NumericEmbedding) {
  using A = TypeParam;
  const DeviceRows padded(7, {5, 7, 0, 1});
  for (const int64_t width : {1, 3, 6, 16}) {
    const int64_t count = 5;
    const int64_t features = count * width;
    std::vector<float> values = RandomValues<float>(padded.real_rows() * count, 1);
    for (size_t i = 0; i < values.size(); i += 7)
      values[i] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> vectors = RandomValues<float>(features, 2);
    const std::vector<float> missing = RandomValues<float>(features, 3);
    HostPanels panels(padded.real_rows(), features);
    elastor::NumericEmbedding<float>(values.data(), count, width, vectors.data(), missing.data(),
                                     panels.view());
    const std::vector<float> expected = Rounded<A>(panels.Read());
    const Buffer<float> device_values = Upload(this->stream_, values);
    const Buffer<float> device_vectors = Upload(this->stream_, vectors);
    const Buffer<float> device_missing = Upload(this->stream_, missing);
    const Buffer<int32_t> local_row = Upload(this->stream_, padded.local_row);
    for (const Layout layout : {Layout::kRowMajor, Layout::kSpread}) {
      const Shape shape{padded.shape.rows(), 1, features + 2};
      DeviceView<A> y(this->stream_, shape, layout, std::vector<float>(shape.size(), 9));
      NumericEmbedding<A>(this->stream_, device_values.data(), local_row.data(), count, width,
                          device_vectors.data(), device_missing.data(), y.view());
      const std::vector<float> embedded = y.Read();
      for (int64_t r = 0; r < shape.rows; ++r) {
        for (int64_t f = 0; f < features + 2; ++f) {
          const float value = embedded[r * shape.features + f];
          if (f >= features) {
            ASSERT_EQ(value, 9);
          } else if (padded.local_row[r] >= 0) {
            ASSERT_EQ(value, expected[padded.local_row[r] * features + f]);
          } else {
            ASSERT_TRUE(std::isfinite(value));
          }
        }
      }
    }
  }
}

// The order of the header, on the host.
float SumInChunks(const std::vector<float>& a, const std::vector<float>& b) {
  float total = 0;
  for (size_t begin = 0; begin < a.size(); begin += kSumRows) {
    float sum = 0;
    for (size_t i = begin; i < std::min(begin + kSumRows, a.size()); ++i)
      sum = std::fma(a[i], b[i], sum);
    total += sum;
  }
  return total;
}

TYPED_TEST(InputsTest, NumericEmbeddingBackward) {
  using A = TypeParam;
  constexpr float kBeyond = 77;
  const DeviceRows padded(150, {150, 70, 0, 129});
  const int64_t leaves = padded.shape.leaves;
  for (const int64_t width : {1, 3, 8}) {
    const int64_t count = 3;
    const int64_t features = count * width;
    const int64_t leaf_stride = features + 5;
    std::vector<float> values = RandomValues<float>(padded.real_rows() * count, 1);
    for (size_t i = 0; i < values.size(); i += 7)
      values[i] = std::numeric_limits<float>::quiet_NaN();
    const Shape shape{padded.shape.rows(), 1, features};
    std::vector<float> dy_values = RandomValues<A>(shape.size(), 2);
    for (int64_t i = 0; i < shape.size(); ++i) {
      if (padded.local_row[i / features] < 0) dy_values[i] = 0;
    }
    std::vector<float> dvectors_expected(leaves * leaf_stride, kBeyond);
    std::vector<float> dmissing_expected = dvectors_expected;
    for (int64_t l = 0; l < leaves; ++l) {
      for (int64_t f = 0; f < features; ++f) {
        std::vector<float> d, value, missing;
        for (int64_t device_row = l * 150; device_row < (l + 1) * 150; ++device_row) {
          const int64_t row = padded.local_row[device_row];
          const float v = row < 0 ? 0 : values[row * count + f / width];
          d.push_back(dy_values[device_row * features + f]);
          value.push_back(std::isnan(v) ? 0 : v);
          missing.push_back(std::isnan(v) ? 1 : 0);
        }
        dvectors_expected[l * leaf_stride + f] = SumInChunks(d, value);
        dmissing_expected[l * leaf_stride + f] = SumInChunks(d, missing);
      }
    }
    const Buffer<float> device_values = Upload(this->stream_, values);
    const Buffer<int32_t> local_row = Upload(this->stream_, padded.local_row);
    const DeviceView<A> dy(this->stream_, shape, Layout::kSpread, dy_values);
    const std::vector<float> untouched(leaves * leaf_stride, kBeyond);
    const Buffer<float> dvectors = Upload(this->stream_, untouched);
    const Buffer<float> dmissing = Upload(this->stream_, untouched);
    const Buffer<float> scratch(&this->stream_, ColumnSumScratch(padded.shape, 2 * features));
    NumericEmbeddingBackward<A>(this->stream_, device_values.data(), local_row.data(), count, width,
                                padded.shape, dy.view(), dvectors.data(), dmissing.data(),
                                leaf_stride, scratch.data());
    ExpectSameBits(Download(this->stream_, dvectors), dvectors_expected);
    ExpectSameBits(Download(this->stream_, dmissing), dmissing_expected);
  }
}

class LossTest : public testing::Test {
 protected:
  void SetUp() override { SetCanonicalFloatingPoint(); }
  Stream stream_;
};

// The third of three labels, learned by the second of two outputs; every seventh row lacks it.
TEST_F(LossTest, BceWithLogitsIsTheCpus) {
  const DeviceRows padded(300, {300, 120, 0, 299});
  const int64_t rows = padded.real_rows();
  const float inverse = 0.37f;
  const BceLabel label = {
      .outputs = 2, .losses = 2, .output = 1, .loss = 1, .columns = 3, .column = 2, .weight = 0.6};
  std::vector<float> logits = RandomValues<float>(rows, 1, 30);
  std::vector<float> labels = RandomValues<float>(3 * rows, 2);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = labels[i] > 0 ? 1.0f : 0.0f;
  for (int64_t row = 3; row < rows; row += 7) {
    labels[3 * row + 2] = std::numeric_limits<float>::quiet_NaN();
  }
  std::vector<float> weights = RandomValues<float>(rows, 3);
  for (float& weight : weights) weight = std::fabs(weight) + 0.1f;
  std::vector<float> by_device_row(2 * padded.shape.rows(), 1e30f);
  for (size_t p = 0; p < padded.local_row.size(); ++p) {
    if (padded.local_row[p] >= 0) by_device_row[2 * p + 1] = logits[padded.local_row[p]];
  }
  const Buffer<float> device_logits = Upload(stream_, by_device_row);
  const Buffer<float> device_labels = Upload(stream_, labels);
  const Buffer<float> device_weights = Upload(stream_, weights);
  const Buffer<float> device_inverse = Upload<float>(stream_, {inverse});
  const Buffer<int32_t> local_row = Upload(stream_, padded.local_row);
  const Buffer<double> losses(&stream_, 2 * padded.shape.rows());
  const Buffer<float> dlogits(&stream_, 2 * padded.shape.rows());
  for (const bool weighted : {false, true}) {
    HostPanels gradient(rows, 1);
    std::vector<double> expected(rows);
    elastor::BceWithLogits<float>(HostPanels(rows, 1, logits).read(), {labels.data() + 2, 3},
                                  weighted ? weights.data() : nullptr,
                                  inverse * static_cast<float>(label.weight), {expected.data()},
                                  gradient.view());
    for (const bool training : {false, true}) {
      BceWithLogits(stream_, padded.shape.rows(), label, device_logits.data(), device_labels.data(),
                    weighted ? device_weights.data() : nullptr, device_inverse.data(),
                    local_row.data(), losses.data(), training ? dlogits.data() : nullptr);
      const std::vector<double> got = Download(stream_, losses);
      for (size_t p = 0; p < padded.local_row.size(); ++p) {
        const int64_t row = padded.local_row[p];
        const double weight = weighted && row >= 0 ? weights[row] : 1;
        const double loss = row < 0 ? 0 : expected[row];
        ASSERT_EQ(got[2 * p + 1], training ? weight * (label.weight * loss) : loss)
            << "device row " << p;
      }
    }
    const std::vector<float> got = Download(stream_, dlogits);
    for (size_t p = 0; p < padded.local_row.size(); ++p) {
      const int64_t row = padded.local_row[p];
      ASSERT_EQ(got[2 * p + 1], row < 0 ? 0 : gradient.view().At(row, 0)) << "device row " << p;
    }
  }
}

// Three labels of four classes; every seventh row lacks the second.
TEST_F(LossTest, SoftmaxCrossEntropyIsTheCpus) {
  const DeviceRows padded(60, {60, 17, 0, 59});
  const int64_t rows = padded.real_rows();
  const ClassLabels task = {.count = 3, .classes = 4};
  const int64_t outputs = task.count * task.classes;
  const float inverse = 0.37f;
  const std::vector<float> logits = RandomValues<float>(rows * outputs, 1, 30);
  std::vector<float> labels, weights = RandomValues<float>(rows, 3);
  std::vector<double> scales;
  for (int64_t row = 0; row < rows; ++row) {
    weights[row] = std::fabs(weights[row]) + 0.1f;
    const bool missing = row % 7 == 3;
    scales.push_back(1.0 / (missing ? 2 : 3) * double{inverse});
    for (int64_t i = 0; i < task.count; ++i) {
      labels.push_back(i == 1 && missing ? std::numeric_limits<float>::quiet_NaN()
                                         : static_cast<float>((row + i) % task.classes));
    }
  }
  std::vector<float> by_device_row(outputs * padded.shape.rows(), 1e30f);
  for (size_t p = 0; p < padded.local_row.size(); ++p) {
    if (padded.local_row[p] < 0) continue;
    std::copy_n(&logits[padded.local_row[p] * outputs], outputs, &by_device_row[p * outputs]);
  }
  HostPanels gradient(rows, outputs);
  std::vector<double> expected(rows * task.count);
  HostPanels host_logits(rows, outputs, logits);
  for (int64_t i = 0; i < task.count; ++i) {
    elastor::SoftmaxCrossEntropy<float>(host_logits.read().Slice(i * task.classes, task.classes),
                                        {labels.data() + i, task.count}, weights.data(),
                                        scales.data(), {expected.data() + i, task.count},
                                        gradient.view().Slice(i * task.classes, task.classes));
  }
  const Buffer<float> device_logits = Upload(stream_, by_device_row);
  const Buffer<float> device_labels = Upload(stream_, labels);
  const Buffer<float> device_weights = Upload(stream_, weights);
  const Buffer<float> device_inverse = Upload<float>(stream_, {inverse});
  const Buffer<int32_t> local_row = Upload(stream_, padded.local_row);
  const Buffer<double> losses(&stream_, task.count * padded.shape.rows());
  const Buffer<float> dlogits(&stream_, outputs * padded.shape.rows());
  for (const bool training : {false, true}) {
    SoftmaxCrossEntropy(stream_, padded.shape.rows(), task, device_logits.data(),
                        device_labels.data(), device_weights.data(), device_inverse.data(),
                        local_row.data(), losses.data(), training ? dlogits.data() : nullptr);
    const std::vector<double> got = Download(stream_, losses);
    for (size_t at = 0; at < got.size(); ++at) {
      const int64_t row = padded.local_row[at / task.count];
      const double loss = row < 0 ? 0 : expected[row * task.count + at % task.count];
      const double share = row >= 0 && row % 7 == 3 ? 0.5 : 1.0 / 3;
      const double weight = row < 0 ? 0 : weights[row];
      ASSERT_EQ(got[at], training ? weight * (share * loss) : loss) << at;
    }
  }
  const std::vector<float> got = Download(stream_, dlogits);
  for (size_t at = 0; at < got.size(); ++at) {
    const int64_t row = padded.local_row[at / outputs];
    ASSERT_EQ(got[at], row < 0 ? 0 : gradient.view().At(row, at % outputs)) << at;
  }
}

}  // namespace
}  // namespace elastor::cuda
