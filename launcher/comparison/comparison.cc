#include "launcher/comparison/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/base/log.h"
#include "launcher/comparison/row_statistics.h"
#include "launcher/comparison/significance.h"

namespace elastor {
namespace {

// Quantiles of the normal distribution.
constexpr double kTwoSided = 1.959963984540054;  // 97.5 %
constexpr double kPower = 0.8416212335729143;    // 80 %

// What a variance of seeds is known by.
struct SeedVariance {
  double of_mean = 0;
  double freedom = 0;  // 0: one run, nothing is known
};

// A metric of one model, or of a difference of two.
struct Metric {
  std::vector<double> of_rows;  // whose mean over rows, or positives, is the value; seeds averaged
  std::vector<double> of_resamples;
  std::vector<SeedVariance> seeds;  // of each model
  // The part of the rows' variance that the seeds' variance has, too: each run sees the rows in its
  // own way.
  double shared_variance = 0;
  double value = 0;
};

Metric operator-(const Metric& first, const Metric& second) {
  Metric difference = first;
  for (size_t i = 0; i < difference.of_rows.size(); ++i) {
    difference.of_rows[i] -= second.of_rows[i];
  }
  for (size_t i = 0; i < difference.of_resamples.size(); ++i) {
    difference.of_resamples[i] -= second.of_resamples[i];
  }
  difference.seeds.insert(difference.seeds.end(), second.seeds.begin(), second.seeds.end());
  difference.shared_variance += second.shared_variance;
  difference.value -= second.value;
  return difference;
}

Interval Around(double value, double half_width) {
  return {value - half_width, value + half_width};
}

// Satterthwaite's: variances of rows are known, those of seeds estimated.
double DegreesOfFreedom(const std::vector<SeedVariance>& seeds, double variance) {
  double share = 0;
  for (const SeedVariance& each : seeds) share += each.of_mean * each.of_mean / each.freedom;
  return share > 0 ? variance * variance / share : std::numeric_limits<double>::infinity();
}

// Rows vary the mean of R runs by c + i / R, where c is common to the runs and i each run's own.
// The spread of the runs has i / R, too: of the variance of the mean, and of the runs' on average.
double SharedVariance(double of_mean, const std::vector<double>& of_runs) {
  if (of_runs.size() < 2) return 0;
  return (Mean(of_runs) - of_mean) / (static_cast<double>(of_runs.size()) - 1);
}

Uncertain WithIntervals(const Metric& metric, double row_variance) {
  Uncertain uncertain;
  uncertain.value = metric.value;
  uncertain.delong = Around(metric.value, kTwoSided * std::sqrt(row_variance));
  if (!metric.of_resamples.empty()) uncertain.rows = CentralInterval(metric.of_resamples);
  double seed_variance = 0;
  for (const SeedVariance& each : metric.seeds) {
    if (each.freedom == 0) return uncertain;
    seed_variance += each.of_mean;
  }
  const auto half_width = [&](double variance) {
    return StudentQuantile(DegreesOfFreedom(metric.seeds, variance)) * std::sqrt(variance);
  };
  const double of_rows_alone = std::max(row_variance - metric.shared_variance, 0.0);
  const double variance = of_rows_alone + seed_variance, both = half_width(variance);
  uncertain.seeds = Around(metric.value, half_width(seed_variance));
  uncertain.both = Around(metric.value, both);
  uncertain.smallest = both + kPower * std::sqrt(variance);
  uncertain.p =
      StudentP(metric.value / std::sqrt(variance), DegreesOfFreedom(metric.seeds, variance));
  return uncertain;
}

SeedVariance VarianceOver(std::span<const double> values) {
  return {VarianceOfMean(values), static_cast<double>(values.size()) - 1};
}

// Metrics of the runs of one model, gathered run by run.
class ModelMetrics {
 public:
  ModelMetrics(const std::vector<uint8_t>& labels, const ComparedModel& model,
               const ComparisonOptions& options)
      : labels_(labels) {
    auc_.of_rows.resize(labels.size());
    logloss_.of_rows.resize(labels.size());
    const auto runs = static_cast<double>(model.runs.size());
    std::vector<double> aucs, loglosses, auc_variances, logloss_variances;
    for (const ComparedRun& run : model.runs) {
      const std::vector<double> placements = Placements(labels, run.probabilities);
      const std::vector<double> losses = Losses(labels, run.probabilities);
      aucs.push_back(MeanOfPositives(labels, placements));
      loglosses.push_back(Mean(losses));
      auc_variances.push_back(DeLongVariance(labels, placements));
      logloss_variances.push_back(VarianceOfMean(losses));
      for (size_t i = 0; i < labels.size(); ++i) {
        auc_.of_rows[i] += placements[i] / runs;
        logloss_.of_rows[i] += losses[i] / runs;
      }
      sorted_.emplace_back(labels, run.probabilities);
      if (run.gauc) gaucs_.push_back(*run.gauc);
    }
    auc_.value = Mean(aucs);
    auc_.seeds = {VarianceOver(aucs)};
    auc_.shared_variance = SharedVariance(DeLongVariance(labels, auc_.of_rows), auc_variances);
    logloss_.value = Mean(loglosses);
    logloss_.seeds = {VarianceOver(loglosses)};
    logloss_.shared_variance = SharedVariance(VarianceOfMean(logloss_.of_rows), logloss_variances);
    auc_.of_resamples.reserve(options.resamples);
    logloss_.of_resamples.reserve(options.resamples);
  }

  void AddResample(std::span<const uint32_t> counts) {
    double auc = 0, logloss = 0;
    for (const ResampledAuc& run : sorted_) auc += run.Of(counts);
    for (size_t i = 0; i < counts.size(); ++i) logloss += counts[i] * logloss_.of_rows[i];
    auc_.of_resamples.push_back(auc / static_cast<double>(sorted_.size()));
    logloss_.of_resamples.push_back(logloss / static_cast<double>(counts.size()));
  }

  const Metric& auc() const { return auc_; }
  const Metric& logloss() const { return logloss_; }

  ModelFigures Figures() const {
    ModelFigures figures;
    figures.auc = WithIntervals(auc_, DeLongVariance(labels_, auc_.of_rows));
    figures.logloss = WithIntervals(logloss_, VarianceOfMean(logloss_.of_rows));
    if (gaucs_.size() != sorted_.size()) return figures;
    figures.gauc = Mean(gaucs_);
    if (gaucs_.size() < 2) return figures;
    const double freedom = static_cast<double>(gaucs_.size()) - 1;
    figures.gauc_seeds =
        Around(*figures.gauc, StudentQuantile(freedom) * std::sqrt(VarianceOfMean(gaucs_)));
    return figures;
  }

 private:
  const std::vector<uint8_t>& labels_;
  Metric auc_, logloss_;
  std::vector<ResampledAuc> sorted_;
  std::vector<double> gaucs_;
};

void Correct(Uncertain PairFigures::*metric, std::vector<PairFigures>* pairs) {
  std::vector<double> p_values;
  for (PairFigures& pair : *pairs) {
    if ((pair.*metric).p) p_values.push_back(*(pair.*metric).p);
  }
  const std::vector<double> adjusted = HolmAdjusted(p_values);
  size_t next = 0;
  for (PairFigures& pair : *pairs) {
    if ((pair.*metric).p) (pair.*metric).holm = adjusted[next++];
  }
}

}  // namespace

Comparison Compare(const std::vector<uint8_t>& labels, const std::vector<ComparedModel>& models,
                   const ComparisonOptions& options) {
  std::vector<ModelMetrics> metrics;
  for (const ComparedModel& model : models) metrics.emplace_back(labels, model, options);
  for (int i = 0; i < options.resamples; ++i) {
    const std::vector<uint32_t> counts =
        ResampleCounts(options.seed, i, static_cast<int64_t>(labels.size()));
    for (ModelMetrics& each : metrics) each.AddResample(counts);
  }
  Comparison comparison;
  for (const ModelMetrics& each : metrics) comparison.models.push_back(each.Figures());
  const auto add_pair = [&](size_t first, size_t second) {
    const Metric auc = metrics[first].auc() - metrics[second].auc();
    const Metric logloss = metrics[first].logloss() - metrics[second].logloss();
    comparison.pairs.push_back({first, second,
                                WithIntervals(auc, DeLongVariance(labels, auc.of_rows)),
                                WithIntervals(logloss, VarianceOfMean(logloss.of_rows))});
  };
  if (options.against.empty()) {
    for (size_t i = 0; i < models.size(); ++i) {
      for (size_t j = i + 1; j < models.size(); ++j) add_pair(i, j);
    }
    Correct(&PairFigures::auc, &comparison.pairs);
    Correct(&PairFigures::logloss, &comparison.pairs);
    return comparison;
  }
  const auto against = std::ranges::find(models, options.against, &ComparedModel::name);
  CHECK(against != models.end()) << options.against;
  const size_t first = against - models.begin();
  for (size_t i = 0; i < models.size(); ++i) {
    if (i != first) add_pair(first, i);
  }
  Correct(&PairFigures::auc, &comparison.pairs);
  Correct(&PairFigures::logloss, &comparison.pairs);
  return comparison;
}

}  // namespace elastor
