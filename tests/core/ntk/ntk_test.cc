#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/graph/per_sample.h"
#include "core/ntk/kernel_product.h"
#include "core/ntk/kernel_tile.h"
#include "core/ntk/ntk_memory.h"
#include "core/ntk/row_factors.h"
#include "core/spectrum/symmetric_matrix.h"
#include "tests/core/graph/finite_difference.h"
#include "tests/core/kernels/panel_testing.h"
#include "tests/core/models/model_cases.h"
#include "tests/core/spectrum/decompositions.h"

namespace elastor {
namespace {

constexpr int64_t kRows = 21;  // two panels

// Rows as a model reads them.
class RandomRows {
 public:
  RandomRows(const FeatureShape& features, int64_t rows)
      : table_features_(RandomNumbers<float>(rows * features.table_features(), /*seed=*/4)),
        numeric_(RandomNumbers<float>(rows * features.numeric_fields, /*seed=*/12)),
        lengths_(SequenceLengths(features, rows)),
        rows_(rows) {
    for (size_t i = 0; i < numeric_.size(); i += 5) {
      numeric_[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  NtkRows rows() const { return {rows_, table_features_.data(), numeric_.data(), lengths_.data()}; }

 private:
  std::vector<float> table_features_;
  std::vector<float> numeric_;
  std::vector<int32_t> lengths_;
  int64_t rows_;
};

std::vector<float> NoisyWeights(const Graph& graph) {
  std::vector<float> weights(graph.parameters().flat_size());
  graph.parameters().Initialize(/*seed=*/3, weights.data());
  const std::vector<float> noise =
      RandomNumbers<float>(static_cast<int64_t>(weights.size()), /*seed=*/6);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += 0.2f * noise[i];
  return weights;
}

// The kernel [rows][rows] of every layer, in tiles of `tile` rows.
std::vector<std::vector<double>> Kernels(RowFactors* factors, const NtkRows& rows, int64_t output,
                                         int64_t tile) {
  const int64_t n = rows.rows;
  std::vector<std::vector<double>> kernels(factors->layers().size(), std::vector<double>(n * n));
  for (size_t r = 0; r < factors->rounds().size(); ++r) {
    const RowFactors::Round& round = factors->rounds()[r];
    std::vector<double> all(n * round.size);
    factors->Compute(rows, output, static_cast<int>(r), all.data(), nullptr);
    KernelTile sum;
    for (int64_t j = 0; j < n; j += tile) {
      for (int64_t i = 0; i < n; i += tile) {
        sum.Begin({j, std::min(n, j + tile)}, {i, std::min(n, i + tile)});
        sum.Add(round.factors, all.data(), round.size);
        for (int64_t a = 0; a < sum.values().rows; ++a) {
          for (int64_t b = 0; b < sum.values().features; ++b) {
            kernels[round.layer][(j + a) * n + i + b] += sum.values().At(a, b);
          }
        }
      }
    }
  }
  return kernels;
}

// Gradients of every row, [rows][flat size], each from a pass of its own; and, unless null, those
// of the tables' features, [rows][table_features].
std::vector<double> Jacobian(const Graph& graph, const std::vector<float>& weights,
                             const NtkRows& rows, int64_t output,
                             std::vector<double>* deltas = nullptr) {
  const FeatureShape& features = graph.features();
  const int64_t size = graph.parameters().flat_size();
  CpuExecutor<double> executor(graph);
  const std::vector<double> parameters(weights.begin(), weights.end());
  executor.Prepare(parameters.data());
  Workspace<double> workspace(executor.workspace_plan(), 1);
  StoringSink<double> sink(&graph.parameters());
  std::vector<double> jacobian(rows.rows * size);
  for (int64_t row = 0; row < rows.rows; ++row) {
    Pass<double> pass;
    pass.workspace = &workspace;
    pass.sink = &sink;
    pass.leaves = PassLeaves(1);
    pass.training = true;
    pass.numeric = rows.numeric + row * features.numeric_fields;
    pass.lengths = rows.lengths + row * features.encoded_sequences();
    for (int64_t f = 0; f < features.table_features(); ++f) {
      executor.Embeddings(pass).At(0, features.numeric_features() + f) =
          rows.table_features[row * features.table_features() + f];
    }
    executor.Forward(pass);
    const Panels<double> dlogits = executor.LogitGradients(pass);
    for (int64_t lane = 0; lane < kPanelRows; ++lane) {
      for (int64_t o = 0; o < graph.outputs(); ++o) {
        dlogits.At(lane, o) = lane == 0 && o == output ? 1 : 0;
      }
    }
    sink.Begin(jacobian.data() + row * size);
    executor.Backward(pass);
    for (int64_t f = 0; deltas != nullptr && f < features.table_features(); ++f) {
      deltas->push_back(executor.EmbeddingGradients(pass).At(0, features.numeric_features() + f));
    }
  }
  return jacobian;
}

class NtkOfModelTest : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    if (!CheckPerSampleGradients(graph_).ok()) GTEST_SKIP();
    if (HasDropout(graph_)) GTEST_SKIP() << "the pass of one row would drop";
  }
  const Graph graph_ = GetParam().graph();
  ThreadPool pool_{2};
};

// K = J J^T, layer by layer; and the same bits from other tiles and in rounds of few numbers.
TEST_P(NtkOfModelTest, IsTheJacobiansGramMatrix) {
  const RandomRows random(graph_.features(), kRows);
  const std::vector<float> weights = NoisyWeights(graph_);
  const int64_t output = graph_.outputs() - 1;
  RowFactors factors(graph_, weights.data(), &pool_, 1 << 20);
  const auto kernels = Kernels(&factors, random.rows(), output, kNtkTile);

  const ParameterLayout& layout = graph_.parameters();
  const std::vector<double> jacobian = Jacobian(graph_, weights, random.rows(), output);
  std::vector<std::vector<double>> expected(kernels.size(), std::vector<double>(kRows * kRows));
  for (const ParameterInfo& parameter : layout.parameters()) {
    // A layer's name may be the beginning of another's: "cross0" and "cross0.gate".
    size_t layer = kernels.size();
    for (size_t l = 0; l < kernels.size(); ++l) {
      const std::string& name = factors.layers()[l].name;
      if (!(parameter.name + ".").starts_with(name + ".")) continue;
      if (layer == kernels.size() || name.size() > factors.layers()[layer].name.size()) layer = l;
    }
    ASSERT_LT(layer, kernels.size()) << parameter.name;
    for (int64_t j = 0; j < kRows; ++j) {
      for (int64_t i = 0; i < kRows; ++i) {
        const double* const a = jacobian.data() + j * layout.flat_size() + parameter.offset;
        const double* const b = jacobian.data() + i * layout.flat_size() + parameter.offset;
        for (int64_t p = 0; p < parameter.size; ++p) {
          expected[layer][j * kRows + i] += a[p] * b[p];
        }
      }
    }
  }
  int64_t parameters = 0;
  for (size_t l = 0; l < kernels.size(); ++l) {
    parameters += factors.layers()[l].parameters;
    for (int64_t j = 0; j < kRows; ++j) {
      for (int64_t i = 0; i < kRows; ++i) {
        const double scale = std::sqrt(expected[l][j * kRows + j] * expected[l][i * kRows + i]);
        ASSERT_NEAR(kernels[l][j * kRows + i], expected[l][j * kRows + i], 1e-12 * scale)
            << factors.layers()[l].name << " " << j << " " << i;
      }
    }
  }
  EXPECT_EQ(parameters, layout.element_count());

  EXPECT_EQ(Kernels(&factors, random.rows(), output, /*tile=*/16), kernels);
  ThreadPool alone(1);
  RowFactors others(graph_, weights.data(), &alone, /*row_elements=*/1 << 20);
  EXPECT_EQ(Kernels(&others, random.rows(), output, kNtkTile), kernels);
  // Maps that are cut are added up in another order.
  constexpr int64_t kFew = 16;
  RowFactors few(graph_, weights.data(), &pool_, kFew);
  if (layout.element_count() > kFew) {
    EXPECT_GT(few.rounds().size(), factors.rounds().size());
  }
  const auto cut = Kernels(&few, random.rows(), output, kNtkTile);
  for (size_t l = 0; l < kernels.size(); ++l) {
    for (int64_t j = 0; j < kRows; ++j) {
      ASSERT_NEAR(cut[l][j * kRows], kernels[l][j * kRows],
                  1e-12 * std::sqrt(kernels[l][0] * kernels[l][j * kRows + j]));
    }
  }
}

// The extreme eigenvalues of the whole kernel are the squares of the singular values of the whole
// Jacobian, which has a column for every number of every row of the tables, too. The second and the
// third field share a table and, in some rows, an id; all rows share ids.
TEST(NtkTest, EigenvaluesAreSquaredSingularValues) {
  const TestModel model = MakeTestModel(
      kCaseFeatures, "rank_elastor { tokens: 3 token_width: 6 feed_forward { expansion: 2 } }");
  const Graph graph = model.graph();
  constexpr int64_t kIds = 4, kTables = 2;
  const int64_t fields = kCaseFeatures.categorical_fields, width = kCaseFeatures.embedding_width;
  const auto key_of = [](int64_t row, int64_t field) {
    return NtkTableRow{.table = std::min<int64_t>(field, 1), .id = row * (field + 1) / 2 % kIds};
  };
  const auto place_of = [&](const NtkTableRow& key) { return (key.table * kIds + key.id) * width; };
  const RandomRows random(graph.features(), kRows);
  const std::vector<float> tables = RandomNumbers<float>(kTables * kIds * width, /*seed=*/9);
  std::vector<float> features;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t f = 0; f < fields; ++f) {
      const float* const vector = tables.data() + place_of(key_of(row, f));
      features.insert(features.end(), vector, vector + width);
    }
  }
  NtkRows rows = random.rows();
  rows.table_features = features.data();

  const std::vector<float> weights = NoisyWeights(graph);
  ThreadPool pool(1);
  RowFactors factors(graph, weights.data(), &pool, 1 << 20);
  std::vector<double> whole(kRows * kRows);
  for (const auto& kernel : Kernels(&factors, rows, 0, kNtkTile)) {
    for (size_t i = 0; i < whole.size(); ++i) whole[i] += kernel[i];
  }
  std::vector<double> first_round(kRows * factors.rounds()[0].size), deltas(features.size());
  factors.Compute(rows, 0, /*round=*/0, first_round.data(), deltas.data());
  NtkTableGradients gradients;
  gradients.width = width;
  for (int64_t row = 0; row < kRows; ++row) {
    std::map<NtkTableRow, std::vector<double>> of_row;
    for (int64_t f = 0; f < fields; ++f) {
      std::vector<double>& gradient = of_row[key_of(row, f)];
      gradient.resize(width);
      for (int64_t c = 0; c < width; ++c) gradient[c] += deltas[(row * fields + f) * width + c];
    }
    for (const auto& [key, gradient] : of_row) {
      gradients.keys.push_back(key);
      gradients.values.insert(gradients.values.end(), gradient.begin(), gradient.end());
    }
    gradients.begin.push_back(static_cast<int64_t>(gradients.keys.size()));
  }
  ASSERT_LT(gradients.keys.size(), kRows * fields) << "no row has an id twice";
  KernelTile tile;
  tile.Begin({0, kRows}, {0, kRows});
  tile.Add(gradients);
  for (int64_t i = 0; i < kRows * kRows; ++i) {
    whole[i] += tile.values().At(i / kRows, i % kRows);
  }
  const Conditioning found = ConditioningOf(EigenvaluesOf(whole, kRows));

  std::vector<double> table_features;
  const std::vector<double> dense = Jacobian(graph, weights, rows, 0, &table_features);
  const int64_t size = graph.parameters().flat_size();
  Eigen::MatrixXd jacobian = Eigen::MatrixXd::Zero(kRows, size + kTables * kIds * width);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < size; ++i) jacobian(row, i) = dense[row * size + i];
    for (int64_t f = 0; f < fields * width; ++f) {
      jacobian(row, size + place_of(key_of(row, f / width)) + f % width) +=
          table_features[row * fields * width + f];
    }
  }
  const auto square_singular = [](const Eigen::MatrixXd& matrix) -> Eigen::VectorXd {
    return SingularValuesByEigen(matrix).array().square();
  };
  const Eigen::VectorXd expected = square_singular(jacobian);
  EXPECT_TRUE(found.resolved());
  EXPECT_NEAR(found.lambda_max, expected[0], 1e-12 * expected[0]);
  EXPECT_NEAR(found.lambda_min, expected[kRows - 1], 1e-12 * expected[0]);
  EXPECT_LT(1e-9 * expected[0], expected[kRows - 1]) << "the test could not fail";
  const Eigen::VectorXd without_tables = square_singular(jacobian.leftCols(size));
  for (const int64_t i : {int64_t{0}, kRows - 1}) {
    EXPECT_GT(expected[i], 1.001 * without_tables[i]) << "the tables do not matter";
  }
}

// All outputs of few; of many some that differ, and not only every so many.
TEST(NtkTest, OutputsOfMany) {
  EXPECT_EQ(NtkOutputs(3), (std::vector<int64_t>{0, 1, 2}));
  for (const int64_t outputs : {64, 65, 100, 1024, 16384, 999'983}) {
    const std::vector<int64_t> chosen = NtkOutputs(outputs);
    ASSERT_EQ(chosen.size(), 64u);
    EXPECT_TRUE(std::ranges::is_sorted(chosen, std::ranges::less_equal()) && chosen[0] == 0);
    EXPECT_LT(chosen.back(), outputs);
    // Every stretch of a sixteenth has some.
    for (int64_t part = 0; part < 16; ++part) {
      EXPECT_GE(std::ranges::count_if(chosen, [&](int64_t o) { return o * 16 / outputs == part; }),
                2)
          << outputs << " " << part;
    }
  }
  std::set<int64_t> bytes;
  for (const int64_t output : NtkOutputs(64 * 256)) bytes.insert(output % 256);
  EXPECT_GE(bytes.size(), 50u);
}

// K v without K, to rounding, for models with and without row gradients of all parameters.
TEST_P(NtkOfModelTest, TimesAVector) {
  const RandomRows random(graph_.features(), kRows);
  const std::vector<float> weights = NoisyWeights(graph_);
  const int64_t output = graph_.outputs() - 1;
  RowFactors factors(graph_, weights.data(), &pool_, 1 << 20);
  const auto kernels = Kernels(&factors, random.rows(), output, kNtkTile);
  const std::vector<double> v = RandomNumbers<double>(kRows, /*seed=*/5);
  KernelProduct product(graph_, weights.data(), &pool_);
  std::vector<double> gradient(graph_.parameters().flat_size());
  std::vector<double> deltas(kRows * graph_.features().table_features());
  std::vector<double> found(kRows);
  product.AddTransposed(random.rows(), output, v.data(), gradient, deltas.data());
  product.AddProduct(random.rows(), output, gradient, found.data(), deltas.data());
  for (int64_t j = 0; j < kRows; ++j) {
    double expected = 0, scale = 0;
    for (const auto& kernel : kernels) {
      for (int64_t i = 0; i < kRows; ++i) {
        expected += kernel[j * kRows + i] * v[i];
        scale += std::abs(kernel[j * kRows + i] * v[i]);
      }
    }
    EXPECT_NEAR(found[j], expected, 1e-11 * scale) << j;
  }
}

INSTANTIATE_TEST_SUITE_P(All, NtkOfModelTest, testing::ValuesIn(ModelCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace elastor
