#include <algorithm>

#include "core/kernels/cuda/elementwise.h"
#include "tests/core/kernels/cuda/device_views.h"

namespace elastor::cuda {
namespace {

template <typename A>
class ColumnSumsTest : public DeviceOpTest<A> {
 protected:
  // [tokens][leaves][features], by the order of the header.
  static std::vector<float> Expected(const LeafShape& leaves, const Shape& shape,
                                     const std::vector<float>& values) {
    std::vector<float> sums;
    for (int64_t t = 0; t < shape.tokens; ++t) {
      for (int64_t l = 0; l < leaves.leaves; ++l) {
        for (int64_t f = 0; f < shape.features; ++f) {
          float total = 0;
          for (int64_t begin = 0; begin < leaves.leaf_rows; begin += kSumRows) {
            float sum = 0;
            for (int64_t r = begin; r < std::min(begin + kSumRows, leaves.leaf_rows); ++r) {
              sum += values[((l * leaves.leaf_rows + r) * shape.tokens + t) * shape.features + f];
            }
            total += sum;
          }
          sums.push_back(total);
        }
      }
    }
    return sums;
  }
  std::vector<float> Sums(const LeafShape& leaves, const Shape& shape, Layout layout,
                          const std::vector<float>& values) {
    const DeviceView<A> x(this->stream_, shape, layout, values);
    const Buffer<float> sums(&this->stream_, shape.tokens * leaves.leaves * shape.features);
    const Buffer<float> scratch(&this->stream_,
                                ColumnSumScratch(leaves, shape.tokens * shape.features));
    LeafColumnSums<A>(this->stream_, leaves, x.view(), sums.data(), leaves.leaves * shape.features,
                      shape.features, scratch.data());
    return Download(this->stream_, sums);
  }
};
TYPED_TEST_SUITE(ColumnSumsTest, ElementTypes);

TYPED_TEST(ColumnSumsTest, StatedOrder) {
  using A = TypeParam;
  for (const LeafShape& leaves : {LeafShape{1, 1}, {2, 64}, {3, 65}, {2, 700}, {4, 3}}) {
    for (const auto& [tokens, features] : {std::pair<int64_t, int64_t>{1, 1}, {3, 26}, {2, 33}}) {
      const Shape shape{leaves.rows(), tokens, features};
      const std::vector<float> values = RandomValues<A>(shape.size(), 1);
      for (const Layout layout : kLayouts) {
        ExpectSameBits(this->Sums(leaves, shape, layout, values),
                       this->Expected(leaves, shape, values));
      }
    }
  }
}

// A leaf's sums do not depend on the leaves that are summed with it.
TYPED_TEST(ColumnSumsTest, LeavesOneByOne) {
  using A = TypeParam;
  constexpr int64_t kLeaves = 16;
  constexpr int64_t kLeafRows = 100;
  constexpr int64_t kFeatures = 26;
  const Shape shape{kLeaves * kLeafRows, 1, kFeatures};
  const std::vector<float> values = RandomValues<A>(shape.size(), 1);
  const std::vector<float> all = this->Sums({kLeaves, kLeafRows}, shape, Layout::kRowMajor, values);
  for (const int64_t together : {1, 2, 4}) {
    std::vector<float> sums;
    for (int64_t first = 0; first < kLeaves; first += together) {
      const int64_t size = together * kLeafRows * kFeatures;
      const auto begin = values.begin() + first * kLeafRows * kFeatures;
      const std::vector<float> some =
          this->Sums({together, kLeafRows}, {together * kLeafRows, 1, kFeatures}, Layout::kRowMajor,
                     {begin, begin + size});
      sums.insert(sums.end(), some.begin(), some.end());
    }
    ExpectSameBits(sums, all);
  }
}

}  // namespace
}  // namespace elastor::cuda
