#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/ntk/kernel_tile.h"
#include "core/ntk/row_factors.h"
#include "tests/golden/golden_training.h"
#include "trainer/evaluate/ntk.h"

namespace elastor {
namespace {

// Relative. In double only the order of additions and libm differ from PyTorch (1e-13 is seen).
constexpr double kDoubleTolerance = 1e-9;

const Json& Golden(const std::string& name) {
  static const auto& golden = *new Json(Json::parse(*ReadFile("tests/golden/golden.json")));
  return golden.at(name);
}

std::vector<double> Numbers(const Json& json) {
  std::vector<double> numbers;
  for (const Json& number : json) numbers.push_back(number.get<double>());
  return numbers;
}

// Sum and sum of squares of every tensor.
void ExpectSums(const Json& expected, const GoldenWeights& weights) {
  ASSERT_EQ(expected.size(), weights.size());
  for (const auto& [name, values] : weights) {
    double sum = 0;
    double magnitude = 0;
    double squares = 0;
    for (const double value : values) {
      sum += value;
      magnitude += std::fabs(value);
      squares += value * value;
    }
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_NEAR(sum, expected[name][0].get<double>(), kDoubleTolerance * magnitude) << name;
    EXPECT_NEAR(squares, expected[name][1].get<double>(), kDoubleTolerance * squares) << name;
  }
}

void ExpectSteps(const Json& expected, const GoldenOutcome& found, double tolerance) {
  const auto expect_near = [&](const char* what, size_t step, double value) {
    const double golden = expected.at(what)[step].get<double>();
    EXPECT_NEAR(value, golden, tolerance * golden) << what << " of step " << step + 1;
  };
  ASSERT_EQ(found.steps.size(), expected.at("loss").size());
  for (size_t i = 0; i < found.steps.size(); ++i) {
    expect_near("loss", i, found.steps[i].loss);
    expect_near("l2", i, found.steps[i].l2);
    expect_near("gradient_norm", i, found.steps[i].gradient_norm);
  }
  const double logloss = expected.at("evaluation_logloss").get<double>();
  EXPECT_NEAR(found.evaluation_logloss, logloss, tolerance * logloss);
}

class GoldenTest : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenTest, DoubleEqualsPyTorch) {
  const Json& expected = Golden(GetParam().name);
  for (const int ranks : {1, 3}) {
    if (ranks > GetParam().leaves) continue;
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const GoldenOutcome found = TrainGolden<double>(GetParam(), ranks, kGoldenSteps);
    {
      SCOPED_TRACE("initial weights differ: golden.json belongs to another initialisation");
      ExpectSums(expected.at("initial"), found.initial);
    }
    ExpectSteps(expected, found, kDoubleTolerance);
    ExpectSums(expected.at("final"), found.final);
  }
}

TEST_P(GoldenTest, FloatFollows) {
  if (GetParam().float_tolerance == 0) return;
  const GoldenOutcome found = TrainGolden<float>(GetParam(), /*ranks=*/1, kGoldenSteps);
  ExpectSteps(Golden(GetParam().name), found, GetParam().float_tolerance);
}

// What the comparison is worth: some steps are clipped, some are not, and the weights move.
TEST_P(GoldenTest, IsWorthComparing) {
  const Json& expected = Golden(GetParam().name);
  const std::vector<double> norms = Numbers(expected.at("gradient_norm"));
  ASSERT_EQ(norms.size(), static_cast<size_t>(kGoldenSteps));
  EXPECT_GT(*std::max_element(norms.begin(), norms.end()), 1.05 * GetParam().clip_norm);
  EXPECT_LT(*std::min_element(norms.begin(), norms.end()), 0.95 * GetParam().clip_norm);
  for (const auto& [name, initial] : expected.at("initial").items()) {
    const double before = initial[1].get<double>();
    const double after = expected.at("final").at(name)[1].get<double>();
    EXPECT_GT(std::fabs(after - before), 1e-6 * std::max(before, after)) << name;
  }
}

// The kernels of ntk.py, embeddings and their shared table included.
TEST(NtkTest, EqualsPyTorch) {
  constexpr double kTolerance = 1e-10;  // of sqrt(K_ii K_jj); 1e-15 is seen
  const auto kernels = Json::parse(*ReadFile("tests/golden/ntk.json"));
  int compared = 0;
  for (const GoldenCase& golden : GoldenCases()) {
    if (!kernels.contains(golden.name)) continue;
    ++compared;
    SCOPED_TRACE(golden.name);
    const Graph graph = golden.model.graph();
    const FeatureShape& features = graph.features();
    const int64_t width = features.row_width();
    const GoldenWeights initial = TrainGolden<double>(golden, /*ranks=*/1, /*steps=*/0).initial;
    std::vector<float> weights(graph.parameters().flat_size());
    for (const ParameterInfo& p : graph.parameters().parameters()) {
      std::ranges::copy(initial.at(p.name), weights.begin() + p.offset);
    }
    const std::vector<TableSpec> tables = GoldenTables(golden);
    const int64_t fields = static_cast<int64_t>(GoldenFields().size());
    const Rows batch = GoldenRows(0, 0, GoldenBatchRows(0), 1);
    std::vector<float> table_features, numeric;
    SparseBatch sparse;
    sparse.fields = fields;
    sparse.offsets = {0};
    for (int64_t row = 0; row < batch.rows; ++row) {
      const int64_t* const ends = batch.offsets.data() + row * fields;
      bool pools = false;
      for (int64_t f = 0; f < fields; ++f) pools = pools || ends[f + 1] - ends[f] > 1;
      if (pools) continue;
      ++sparse.rows;
      for (int64_t f = 0; f < fields; ++f) {
        const bool empty = ends[f] == ends[f + 1];
        const std::vector<double>& table =
            initial.at("embedding/" + tables[GoldenFields()[f].table].name);
        for (int64_t c = 0; c < width; ++c) {
          table_features.push_back(
              empty ? 0.0f : static_cast<float>(table[batch.ids[ends[f]] * width + c]));
        }
        if (!empty) sparse.ids.push_back(batch.ids[ends[f]]);
        sparse.offsets.push_back(static_cast<int64_t>(sparse.ids.size()));
      }
      for (int64_t i = 0; i < features.numeric_fields; ++i) {
        numeric.push_back(batch.numeric[row * features.numeric_fields + i]);
      }
    }
    ThreadPool pool(1);
    RowFactors factors(graph, weights.data(), &pool, 1 << 20);
    const int64_t n = sparse.rows;
    std::vector<double> deltas(table_features.size());
    KernelTile tile;
    tile.Begin({0, n}, {0, n});
    for (size_t r = 0; r < factors.rounds().size(); ++r) {
      const RowFactors::Round& round = factors.rounds()[r];
      std::vector<double> all(n * round.size);
      factors.Compute({n, table_features.data(), numeric.data(), nullptr}, 0, static_cast<int>(r),
                      all.data(), deltas.data());
      tile.Add(round.factors, all.data(), round.size);
    }
    tile.Add(TableGradients(sparse, GoldenFields(), width, deltas));
    const std::vector<double> expected = Numbers(kernels[golden.name]);
    ASSERT_EQ(static_cast<int64_t>(expected.size()), n * (n + 1) / 2);
    for (int64_t j = 0, at = 0; j < n; ++j) {
      for (int64_t i = 0; i <= j; ++i, ++at) {
        const double scale = std::sqrt(expected[j * (j + 3) / 2] * expected[i * (i + 3) / 2]);
        EXPECT_NEAR(tile.values().At(j, i), expected[at], kTolerance * scale) << j << " " << i;
      }
    }
  }
  EXPECT_EQ(compared, 5);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, testing::ValuesIn(GoldenCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace elastor
