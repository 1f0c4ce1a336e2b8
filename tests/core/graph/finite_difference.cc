#include "tests/core/graph/finite_difference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "core/kernels/elementwise.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

constexpr int64_t kRows = 21;  // a full panel and one with padding
// The step: small enough to seldom cross a ReLU's kink.
constexpr double kStep = 1e-6;
// Of f, relative to the sum of its terms' sizes, as deep graphs have it.
constexpr double kRounding = 1e-15;
// Relative to the element, or to the root mean square of its tensor's gradient where that is more.
constexpr double kTolerance = 1e-6;
constexpr int64_t kSamples = 12;  // elements of a tensor of more than twice as many

// [kRows][fields], some missing.
std::vector<float> NumericValues(int64_t fields) {
  std::vector<float> values = RandomNumbers<float>(kRows * fields, /*seed=*/12);
  for (size_t i = 0; i < values.size(); i += 5) values[i] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

}  // namespace

std::vector<int32_t> SequenceLengths(const FeatureShape& features, int64_t rows) {
  std::vector<int32_t> lengths;
  for (int64_t row = 0; row < rows; ++row) {
    for (const SequenceShape& sequence : features.sequences) {
      if (sequence.pooled) continue;
      const auto i = static_cast<int64_t>(lengths.size());
      lengths.push_back(static_cast<int32_t>((3 * row + i) % (sequence.positions + 1)));
    }
  }
  return lengths;
}

namespace {

class Check {
 public:
  Check(const Graph& graph, const GradientCheck& check)
      : graph_(graph),
        check_(check),
        executor_(graph, check.rewrites),
        numeric_(NumericValues(graph.features().numeric_fields)),
        lengths_(SequenceLengths(graph.features(), kRows)),
        workspace_(executor_.workspace_plan(), kRows),
        sink_(&graph.parameters()),
        weights_(graph.parameters().flat_size()),
        x_(kRows, graph.features().embedding_features(), /*seed=*/1),
        y_(kRows, graph.outputs(), /*seed=*/2),
        dy_(kRows, graph.outputs(), /*seed=*/3),
        dx_(kRows, graph.features().embedding_features(), /*seed=*/4) {
    dy_.ZeroPadding();
    graph.parameters().Initialize(/*seed=*/5, weights_.data());
    // Gains away from 1 and biases away from 0.
    const std::vector<double> noise = RandomNumbers<double>(weights_.size(), /*seed=*/6);
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] += 0.2 * noise[i];
    executor_.Prepare(weights_.data());
  }

  void Run() {
    const double value = Value();
    ExpectEvaluationAgrees();
    std::vector<double>& gradients = sink_.gradients();
    std::fill(gradients.begin(), gradients.end(), std::numeric_limits<double>::quiet_NaN());
    Backward(Store::kOverwrite);
    const std::vector<double> written = gradients;
    const auto untouched = std::count_if(written.begin(), written.end(),
                                         [](double gradient) { return std::isnan(gradient); });
    int64_t padding = graph_.parameters().flat_size();
    for (const ParameterInfo& p : graph_.parameters().parameters()) padding -= p.size;
    EXPECT_EQ(untouched, padding);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = 0.01 * static_cast<double>(i % 7);
    EXPECT_EQ(Value(), value);
    Backward(Store::kAdd);
    for (const ParameterInfo& p : graph_.parameters().parameters()) ExpectAdded(p, written);
    ExpectPaddingIsZero();
    for (const ParameterInfo& p : graph_.parameters().parameters()) {
      if (!p.statistic) ExpectParameterGradient(p, written);
    }
    ExpectInputGradient();
  }

 private:
  Pass<double> MakePass(bool training) {
    Pass<double> pass;
    pass.workspace = &workspace_;
    pass.sink = &sink_;
    pass.leaves = PassLeaves(kRows);
    pass.training = training;
    pass.numeric = numeric_.data();
    pass.lengths = lengths_.data();
    pass.seed = 8;
    pass.step = 9;
    pass.first_row = 10;
    return pass;
  }

  void Forward(const Pass<double>& pass, Panels<double> y) {
    Copy<double>(x_.read(), executor_.Embeddings(pass));
    executor_.Forward(pass);
    Copy<double>(executor_.Logits(pass), y);
  }

  // sum(dy * y), whose gradients Backward computes.
  double Value() {
    Forward(MakePass(/*training=*/true), y_.view());
    double sum = 0;
    size_ = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t f = 0; f < graph_.outputs(); ++f) {
        const double term = dy_.view().At(row, f) * y_.view().At(row, f);
        sum += term;
        size_ += std::fabs(term);
      }
    }
    return sum;
  }

  void Backward(Store store) {
    const Pass<double> pass = MakePass(/*training=*/true);
    sink_.Begin(store);
    Copy<double>(dy_.read(), executor_.LogitGradients(pass));
    executor_.Backward(pass);
    Copy<double>(executor_.EmbeddingGradients(pass), dx_.view());
    sink_.End();
  }

  void ExpectEvaluationAgrees() {
    if (!check_.evaluates_alike) return;
    PanelBuffer<double> evaluated(kRows, graph_.outputs(), /*seed=*/7);
    Workspace<double> workspace(executor_.workspace_plan(), kRows);
    Pass<double> pass = MakePass(/*training=*/false);
    pass.workspace = &workspace;
    pass.sink = nullptr;
    Forward(pass, evaluated.view());
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t f = 0; f < graph_.outputs(); ++f) {
        ASSERT_EQ(evaluated.view().At(row, f), y_.view().At(row, f)) << row << ", " << f;
      }
    }
  }

  void ExpectAdded(const ParameterInfo& p, const std::vector<double>& written) {
    for (int64_t i = p.offset; i < p.offset + p.size; ++i) {
      ASSERT_TRUE(std::isfinite(written[i])) << p.name << ": element " << i - p.offset;
      ASSERT_EQ(sink_.gradients()[i], 0.01 * static_cast<double>(i % 7) + written[i])
          << p.name << ": element " << i - p.offset;
    }
  }

  void ExpectPaddingIsZero() {
    for (int64_t row = kRows; row < dx_.view().panels() * kPanelRows; ++row) {
      for (int64_t f = 0; f < graph_.features().embedding_features(); ++f) {
        ASSERT_EQ(dx_.view().At(row, f), 0) << row << ", " << f;
      }
    }
  }

  double CentralDifference(double* element) {
    const double saved = *element;
    *element = saved + kStep;
    executor_.Prepare(weights_.data());
    const double above = Value();
    *element = saved - kStep;
    executor_.Prepare(weights_.data());
    const double below = Value();
    *element = saved;
    executor_.Prepare(weights_.data());
    return (above - below) / (2 * kStep);
  }

  void ExpectNear(const std::string& what, double gradient, double scale, double* element) {
    const double difference = CentralDifference(element);
    const double rounding = kRounding * size_ / kStep;
    EXPECT_NEAR(gradient, difference, kTolerance * std::max(std::fabs(gradient), scale) + rounding)
        << what;
  }

  void ExpectParameterGradient(const ParameterInfo& p, const std::vector<double>& gradients) {
    double squares = 0;
    for (int64_t i = 0; i < p.size; ++i) {
      squares += gradients[p.offset + i] * gradients[p.offset + i];
    }
    const double scale = std::sqrt(squares / static_cast<double>(p.size));
    EXPECT_GT(scale, 0) << p.name;
    for (const int64_t i : SampleOf(p.size)) {
      ExpectNear(p.name + ": element " + std::to_string(i), gradients[p.offset + i], scale,
                 &weights_[p.offset + i]);
    }
  }

  void ExpectInputGradient() {
    const int64_t first =
        graph_.features().numeric_features();  // the others are written by Forward
    const int64_t features = graph_.features().table_features();
    if (features == 0) return;
    double squares = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t f = first; f < graph_.features().embedding_features(); ++f) {
        squares += dx_.view().At(row, f) * dx_.view().At(row, f);
      }
    }
    const double scale = std::sqrt(squares / static_cast<double>(kRows * features));
    EXPECT_GT(scale, 0);
    for (const int64_t i : SampleOf(kRows * features)) {
      const int64_t row = i / features;
      const int64_t f = first + i % features;
      ExpectNear("x: row " + std::to_string(row) + ", feature " + std::to_string(f),
                 dx_.view().At(row, f), scale, &x_.view().At(row, f));
    }
  }

  // Indices in [0, size): all, or random ones.
  std::vector<int64_t> SampleOf(int64_t size) {
    const bool all = size <= 2 * kSamples;
    std::vector<int64_t> sample;
    for (int64_t i = 0; i < (all ? size : kSamples); ++i) {
      sample.push_back(all ? i : static_cast<int64_t>(random_() % size));
    }
    return sample;
  }

  const Graph& graph_;
  const GradientCheck check_;
  CpuExecutor<double> executor_;
  const std::vector<float> numeric_;
  const std::vector<int32_t> lengths_;
  std::mt19937_64 random_{11};
  double size_ = 0;  // of the last Value's terms
  Workspace<double> workspace_;
  FlatSink<double> sink_;
  std::vector<double> weights_;
  PanelBuffer<double> x_, y_, dy_, dx_;
};

}  // namespace

void ExpectGradients(const Graph& graph, const GradientCheck& check) { Check(graph, check).Run(); }

}  // namespace elastor
