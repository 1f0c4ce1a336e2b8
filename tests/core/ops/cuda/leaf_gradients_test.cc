#include "core/ops/cuda/leaf_gradients.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/cuda/device_arrays.h"

namespace elastor::cuda {
namespace {

// Three buckets of {a}, {b, c} and {d} elements.
class LeafGradientsTest : public testing::Test {
 protected:
  LeafGradientsTest() {
    for (const auto& [name, size] :
         {std::pair("a", 20), std::pair("b", 6), std::pair("c", 12), std::pair("d", 5)}) {
      layout_.Declare(name, {size}, Init::Constant(0), Decay::kNone);
    }
    layout_.Finish();
  }

  ParameterLayout layout_{/*bucket_elements=*/20};
  Stream stream_;
};

// Map m of leaf l is 100 m + 10 l + place.
TEST_F(LeafGradientsTest, RunsSayWhereGradientsLie) {
  ASSERT_EQ(layout_.buckets().size(), 3u);
  LeafGradients gradients(&layout_, &stream_);
  constexpr int64_t kMaps[] = {4, 1, 3, 5};
  for (int64_t leaves : {2, 3}) {
    gradients.Reserve(leaves);
    gradients.Begin(nullptr);
    for (int p = 3; p >= 0; --p) {
      const LeafGradients::Target target = gradients.Open(p, kMaps[p]);
      const int64_t inner = layout_[p].size / kMaps[p];
      for (int64_t m = 0; m < kMaps[p]; ++m) {
        for (int64_t l = 0; l < leaves; ++l) {
          std::vector<float> values;
          for (int64_t i = 0; i < inner; ++i) values.push_back(100 * m + 10 * l + i);
          Copy(stream_, target.data + m * target.map_stride + l * target.leaf_stride, values.data(),
               inner);
        }
      }
      gradients.Close(p);
    }
    int p = 0;
    for (int b = 0; b < 3; ++b) {
      std::vector<FoldRun> runs(gradients.run_count(b));
      Copy(stream_, runs.data(), gradients.runs(b), static_cast<int64_t>(runs.size()));
      stream_.Synchronize();
      for (const FoldRun& run : runs) {
        EXPECT_EQ(run.begin, layout_[p].offset);
        ASSERT_EQ(run.size, layout_[p].size);
        ASSERT_EQ(run.inner, run.size / kMaps[p]);
        std::vector<float> values(run.size * leaves);
        Copy(stream_, values.data(), run.data, static_cast<int64_t>(values.size()));
        stream_.Synchronize();
        for (int64_t i = 0; i < run.size; ++i) {
          for (int64_t l = 0; l < leaves; ++l) {
            EXPECT_EQ(values[(i / run.inner * leaves + l) * run.inner + i % run.inner],
                      100 * (i / run.inner) + 10 * l + i % run.inner);
          }
        }
        ++p;
      }
    }
    EXPECT_EQ(p, 4);
  }
}

TEST_F(LeafGradientsTest, BucketsAreReadyWhenTheirLastParameterIsClosed) {
  LeafGradients gradients(&layout_, &stream_);
  gradients.Reserve(1);
  std::vector<int> ready;
  for (int pass = 0; pass < 2; ++pass) {
    ready.clear();
    gradients.Begin([&](int bucket) { ready.push_back(bucket); });
    for (int p : {3, 2}) {
      gradients.Open(p, 1);
      gradients.Close(p);
    }
    EXPECT_EQ(ready, std::vector<int>({2}));
    gradients.Open(0, 1);
    gradients.Open(1, 1);
    gradients.Close(0);
    gradients.Close(1);
    EXPECT_EQ(ready, std::vector<int>({2, 0, 1}));
  }
}

using LeafGradientsDeathTest = LeafGradientsTest;

TEST_F(LeafGradientsDeathTest, EveryParameterOnceWithTheSameMaps) {
  LeafGradients gradients(&layout_, &stream_);
  gradients.Reserve(1);
  gradients.Begin(nullptr);
  gradients.Open(0, 4);
  gradients.Close(0);
  EXPECT_DEATH(gradients.Close(0), "a");
  EXPECT_DEATH(gradients.Open(0, 2), "a");
  EXPECT_DEATH(gradients.Open(1, 4), "b");
}

}  // namespace
}  // namespace elastor::cuda
