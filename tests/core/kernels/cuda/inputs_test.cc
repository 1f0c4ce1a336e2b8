// Ops that see where in the batch a row is: dropout, loss, numeric fields.

#include <algorithm>
#include <limits>

#include "core/base/random.h"
#include "core/kernels/cuda/elementwise.h"
#include "core/kernels/elementwise.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

// Rows of leaves in places: leaf l has counts[l] rows, in order, the rest is padding (-1).
struct Places {
  LeafShape shape;
  std::vector<int32_t> row;

  Places(int64_t leaf_rows, const std::vector<int32_t>& counts)
      : shape{static_cast<int64_t>(counts.size()), leaf_rows} {
    int32_t next = 0;
    for (const int32_t count : counts) {
      for (int64_t i = 0; i < leaf_rows; ++i) row.push_back(i < count ? next++ : -1);
    }
  }
  int64_t real_rows() const {
    return std::count_if(row.begin(), row.end(), [](int32_t r) { return r >= 0; });
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
        // Places hold rows in another order than the CPU's panels.
        std::vector<int32_t> place_row(shape.rows);
        for (int64_t r = 0; r < shape.rows; ++r)
          place_row[r] = static_cast<int32_t>(shape.rows - 1 - r);
        std::vector<float> by_row(shape.size());
        for (int64_t i = 0; i < shape.size(); ++i) {
          by_row[place_row[i / columns] * columns + i % columns] = values[i];
        }
        HostPanels panels(shape.rows, columns, by_row);
        elastor::Dropout<float>({key, kStep, kFirstRow, rate}, panels.read(), panels.view());
        const std::vector<float> kept = panels.Read();
        std::vector<float> expected(shape.size());
        for (int64_t i = 0; i < shape.size(); ++i) {
          expected[i] = kept[place_row[i / columns] * columns + i % columns];
        }
        const Buffer<uint32_t> step = Upload<uint32_t>(this->stream_, {kStep});
        const Buffer<int64_t> first_row = Upload<int64_t>(this->stream_, {kFirstRow});
        const Buffer<int32_t> places = Upload(this->stream_, place_row);
        DeviceView<A> x(this->stream_, shape, layout, values);
        const DeviceDropout dropout{key, rate, step.data(), first_row.data(), places.data()};
        Dropout<A>(this->stream_, dropout, x.view());
        ExpectSameBits(x.Read(), Rounded<A>(expected));
      }
    }
  }
}

TYPED_TEST(InputsTest, NumericEmbedding) {
  using A = TypeParam;
  const Places places(7, {5, 7, 0, 1});
  for (const int64_t width : {1, 3, 6, 16}) {
    const int64_t count = 5;
    const int64_t features = count * width;
    std::vector<float> values = RandomValues<float>(places.real_rows() * count, 1);
    for (size_t i = 0; i < values.size(); i += 7)
      values[i] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> vectors = RandomValues<float>(features, 2);
    const std::vector<float> missing = RandomValues<float>(features, 3);
    HostPanels panels(places.real_rows(), features);
    elastor::NumericEmbedding<float>(values.data(), count, width, vectors.data(), missing.data(),
                                     panels.view());
    const std::vector<float> expected = Rounded<A>(panels.Read());
    const Buffer<float> device_values = Upload(this->stream_, values);
    const Buffer<float> device_vectors = Upload(this->stream_, vectors);
    const Buffer<float> device_missing = Upload(this->stream_, missing);
    const Buffer<int32_t> place_row = Upload(this->stream_, places.row);
    for (const Layout layout : {Layout::kRowMajor, Layout::kSpread}) {
      const Shape shape{places.shape.rows(), 1, features + 2};
      DeviceView<A> y(this->stream_, shape, layout, std::vector<float>(shape.size(), 9));
      NumericEmbedding<A>(this->stream_, device_values.data(), place_row.data(), count, width,
                          device_vectors.data(), device_missing.data(), y.view());
      const std::vector<float> embedded = y.Read();
      for (int64_t r = 0; r < shape.rows; ++r) {
        for (int64_t f = 0; f < features + 2; ++f) {
          const float value = embedded[r * shape.features + f];
          if (f >= features) {
            ASSERT_EQ(value, 9);
          } else if (places.row[r] >= 0) {
            ASSERT_EQ(value, expected[places.row[r] * features + f]);
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
  const Places places(150, {150, 70, 0, 129});
  const int64_t leaves = places.shape.leaves;
  for (const int64_t width : {1, 3, 8}) {
    const int64_t count = 3;
    const int64_t features = count * width;
    const int64_t leaf_stride = features + 5;
    std::vector<float> values = RandomValues<float>(places.real_rows() * count, 1);
    for (size_t i = 0; i < values.size(); i += 7)
      values[i] = std::numeric_limits<float>::quiet_NaN();
    const Shape shape{places.shape.rows(), 1, features};
    std::vector<float> dy_values = RandomValues<A>(shape.size(), 2);
    for (int64_t i = 0; i < shape.size(); ++i) {
      if (places.row[i / features] < 0) dy_values[i] = 0;
    }
    std::vector<float> dvectors_expected(leaves * leaf_stride, kBeyond);
    std::vector<float> dmissing_expected = dvectors_expected;
    for (int64_t l = 0; l < leaves; ++l) {
      for (int64_t f = 0; f < features; ++f) {
        std::vector<float> d, value, missing;
        for (int64_t place = l * 150; place < (l + 1) * 150; ++place) {
          const int64_t row = places.row[place];
          const float v = row < 0 ? 0 : values[row * count + f / width];
          d.push_back(dy_values[place * features + f]);
          value.push_back(std::isnan(v) ? 0 : v);
          missing.push_back(std::isnan(v) ? 1 : 0);
        }
        dvectors_expected[l * leaf_stride + f] = SumInChunks(d, value);
        dmissing_expected[l * leaf_stride + f] = SumInChunks(d, missing);
      }
    }
    const Buffer<float> device_values = Upload(this->stream_, values);
    const Buffer<int32_t> place_row = Upload(this->stream_, places.row);
    const DeviceView<A> dy(this->stream_, shape, Layout::kSpread, dy_values);
    const std::vector<float> untouched(leaves * leaf_stride, kBeyond);
    const Buffer<float> dvectors = Upload(this->stream_, untouched);
    const Buffer<float> dmissing = Upload(this->stream_, untouched);
    const Buffer<float> scratch(&this->stream_, ColumnSumScratch(places.shape, 2 * features));
    NumericEmbeddingBackward<A>(this->stream_, device_values.data(), place_row.data(), count, width,
                                places.shape, dy.view(), dvectors.data(), dmissing.data(),
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

TEST_F(LossTest, BceWithLogitsIsTheCpus) {
  const Places places(300, {300, 120, 0, 299});
  const int64_t rows = places.real_rows();
  const float inverse = 0.37f;
  std::vector<float> logits = RandomValues<float>(rows, 1, 30);
  std::vector<float> labels = RandomValues<float>(rows, 2);
  for (float& label : labels) label = label > 0 ? 1.0f : 0.0f;
  std::vector<float> weights = RandomValues<float>(rows, 3);
  for (float& weight : weights) weight = std::fabs(weight) + 0.1f;
  std::vector<float> by_place(places.shape.rows(), 1e30f);
  for (size_t p = 0; p < places.row.size(); ++p) {
    if (places.row[p] >= 0) by_place[p] = logits[places.row[p]];
  }
  const Buffer<float> device_logits = Upload(stream_, by_place);
  const Buffer<float> device_labels = Upload(stream_, labels);
  const Buffer<float> device_weights = Upload(stream_, weights);
  const Buffer<float> device_inverse = Upload<float>(stream_, {inverse});
  const Buffer<int32_t> place_row = Upload(stream_, places.row);
  const Buffer<double> losses(&stream_, places.shape.rows());
  const Buffer<float> dlogits(&stream_, places.shape.rows());
  for (const bool weighted : {false, true}) {
    HostPanels gradient(rows, 1);
    std::vector<double> expected(rows);
    elastor::BceWithLogits<float>(HostPanels(rows, 1, logits).read(), labels.data(),
                                  weighted ? weights.data() : nullptr, inverse, expected.data(),
                                  gradient.view());
    for (const bool training : {false, true}) {
      BceWithLogits(stream_, places.shape.rows(), device_logits.data(), device_labels.data(),
                    weighted ? device_weights.data() : nullptr, device_inverse.data(),
                    place_row.data(), losses.data(), training ? dlogits.data() : nullptr);
      const std::vector<double> got = Download(stream_, losses);
      for (size_t p = 0; p < places.row.size(); ++p) {
        const int64_t row = places.row[p];
        const double weight = weighted && training && row >= 0 ? weights[row] : 1;
        ASSERT_EQ(got[p], row < 0 ? 0 : weight * expected[row]) << "place " << p;
      }
    }
    const std::vector<float> got = Download(stream_, dlogits);
    for (size_t p = 0; p < places.row.size(); ++p) {
      const int64_t row = places.row[p];
      ASSERT_EQ(got[p], row < 0 ? 0 : gradient.view().At(row, 0)) << "place " << p;
    }
  }
}

}  // namespace
}  // namespace elastor::cuda
