#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_training.h"

namespace elastor {
namespace {

// Relative. In double only the order of additions and libm differ from PyTorch (1e-13 is seen).
constexpr double kDoubleTolerance = 1e-9;

const nlohmann::json& Golden(const std::string& name) {
  static const auto& golden =
      *new nlohmann::json(nlohmann::json::parse(std::ifstream("tests/golden/golden.json")));
  return golden.at(name);
}

// Sum and sum of squares of every tensor.
void ExpectSums(const nlohmann::json& expected, const GoldenWeights& weights) {
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

void ExpectSteps(const nlohmann::json& expected, const GoldenOutcome& found, double tolerance) {
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
  const nlohmann::json& expected = Golden(GetParam().name);
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
  const nlohmann::json& expected = Golden(GetParam().name);
  const std::vector<double> norms = expected.at("gradient_norm");
  ASSERT_EQ(norms.size(), static_cast<size_t>(kGoldenSteps));
  EXPECT_GT(*std::max_element(norms.begin(), norms.end()), 1.05 * GetParam().clip_norm);
  EXPECT_LT(*std::min_element(norms.begin(), norms.end()), 0.95 * GetParam().clip_norm);
  for (const auto& [name, initial] : expected.at("initial").items()) {
    const double before = initial[1].get<double>();
    const double after = expected.at("final").at(name)[1].get<double>();
    EXPECT_GT(std::fabs(after - before), 1e-6 * std::max(before, after)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, testing::ValuesIn(GoldenCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace elastor
