#include "launcher/scaling_law/analysis.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/random.h"
#include "launcher/scaling_law/sizes.h"

namespace elastor {
namespace {

// Nodes of the grid of starts, by the number of sizes: 64, 576 and 1,728 starts.
constexpr int kNodes[] = {64, 24, 12};

// Sizes of one kind in a row.
struct Axis {
  double least = 0;
  double most = 0;
  double step = 1;  // mean ratio of neighbours
};

Axis AxisOf(std::span<const Configuration> configurations, size_t k) {
  const auto size = [k](const Configuration& configuration) { return configuration.sizes[k]; };
  const double least = size(std::ranges::min(configurations, {}, size));
  const double most = size(std::ranges::max(configurations, {}, size));
  const int steps = std::max(1, DifferentSizes(configurations, k) - 1);
  return {least, most, std::pow(most / least, 1.0 / steps)};
}

LawPrediction Predict(const Analysis& analysis, const std::vector<double>& sizes) {
  const auto at_sizes = [&sizes](const Law& law) { return law.At(sizes); };
  return {sizes, std::nullopt, at_sizes(analysis.fit.law), analysis.bootstrap.Of(at_sizes)};
}

void AddPredictions(Analysis* analysis) {
  for (const Configuration& configuration : analysis->configurations) {
    const std::vector<double>& values = configuration.values;
    LawPrediction prediction = Predict(*analysis, configuration.sizes);
    prediction.observed =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    analysis->predictions.push_back(std::move(prediction));
  }
  for (const int steps : {1, 2}) {
    std::vector<double> sizes;
    for (size_t k = 0; k < analysis->size_names.size(); ++k) {
      const Axis axis = AxisOf(analysis->configurations, k);
      sizes.push_back(axis.most * std::pow(axis.step, steps));
    }
    analysis->predictions.push_back(Predict(*analysis, sizes));
  }
}

}  // namespace

Analysis Analyse(const std::string& model, std::span<const std::string> size_names,
                 std::span<const Configuration> configurations, const AnalysisOptions& options) {
  const int nodes = kNodes[size_names.size() - 1];
  // Every model has draws of its own: differences between models must not share their noise.
  const uint64_t key = MakeRandomKey(options.seed, RandomPurpose::kSynthetic, HashName(model));
  const FittedLaw fitted = FitLaw(configurations, options.delta, nodes);
  Analysis analysis = {
      .model = model,
      .size_names = {size_names.begin(), size_names.end()},
      .configurations = {configurations.begin(), configurations.end()},
      .seed_spread = SeedSpread(configurations),
      .delta = fitted.delta,
      .fit = fitted.fit,
      .noise = fitted.noise,
      .tenth_of_delta = FitLaw(configurations, fitted.delta / 10, nodes).fit.law,
      .ten_times_delta = FitLaw(configurations, fitted.delta * 10, nodes).fit.law,
      .bootstrap = LawBootstrap(configurations, fitted, options.replicates, key),
      .predictions = {},
      .identification = {},
      .hold_out = HoldOutLargest(configurations, options.delta, nodes, options.replicates, key)};
  analysis.identification =
      Identify(configurations, size_names, fitted, analysis.bootstrap, analysis.hold_out);
  AddPredictions(&analysis);
  return analysis;
}

std::vector<ComparedPrediction> Compare(const Analysis& first, const Analysis& second,
                                        int comparisons) {
  const Axis a = AxisOf(first.configurations, 0), b = AxisOf(second.configurations, 0);
  const double least = std::max(a.least, b.least), most = std::min(a.most, b.most);
  std::vector<ComparedPrediction> compared;
  if (least > most) return compared;
  for (const double size : {least, std::sqrt(least * most), most, most * a.step}) {
    const std::vector<double> sizes = {size};
    std::vector<double> differences;
    for (int r = 0; r < first.bootstrap.replicates(); ++r) {
      differences.push_back(first.bootstrap.laws()[r].At(sizes) -
                            second.bootstrap.laws()[r].At(sizes));
    }
    compared.push_back({size, first.fit.law.At(sizes), second.fit.law.At(sizes),
                        CentralInterval(std::move(differences), kTails / comparisons)});
  }
  return compared;
}

}  // namespace elastor
