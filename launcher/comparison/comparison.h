#ifndef ELASTOR_LAUNCHER_COMPARISON_COMPARISON_H_
#define ELASTOR_LAUNCHER_COMPARISON_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"

namespace elastor {

// A run: its predictions of the split's rows, in the order of the rows.
struct ComparedRun {
  int64_t seed = 0;
  std::vector<float> probabilities;
  std::optional<double> gauc;
};

// The runs of one model, which differ in their seed.
struct ComparedModel {
  std::string name;
  int64_t dense_parameters = 0;
  std::vector<ComparedRun> runs;  // at least one
};

// All intervals are of 95 %.
//
// Two things make a difference uncertain: other rows would give another one, and so would other
// seeds. For the rows, a model's metric is the mean over its seeds, and the same rows are in
// the metrics of all models: `rows` is the central part of a bootstrap that draws rows, `delong`
// the normal approximation (of the AUC DeLong's variance, of the logloss that of a mean). For the
// seeds, runs are independent: `seeds` is Student's interval, of a difference Welch's. `both` adds
// the two variances, with the degrees of freedom of Welch and Satterthwaite, and is what an order
// is claimed by.
struct Uncertain {
  double value = 0;
  std::optional<Interval> rows;  // without resamples: none
  Interval delong;
  std::optional<Interval> seeds;  // one run: none
  std::optional<Interval> both;
  // The true difference from 0 that a sample like this one shows with a probability of 80 %: the
  // half-width of `both` and another 0.84 standard errors.
  std::optional<double> smallest;

  // Whether `both` is known and does not hold 0.
  bool differs_from_0() const { return both && (both->low > 0 || both->high < 0); }
};

struct ModelFigures {
  Uncertain auc, logloss;
  std::optional<double> gauc;  // mean over the runs
  std::optional<Interval> gauc_seeds;
};

// Of first - second, places in the list of models.
struct PairFigures {
  size_t first = 0, second = 0;
  Uncertain auc, logloss;
};

struct ComparisonOptions {
  int resamples = 1000;  // of the rows; 0: none
  uint64_t seed = 1;     // of the resamples
  // Only pairs with this one, which comes first; empty: all pairs.
  std::string against = {};
};

struct Comparison {
  std::vector<ModelFigures> models;
  std::vector<PairFigures> pairs;
};

// Deterministic; a model's figures do not depend on which others there are. REQUIRES: labels of
// both classes, as many probabilities in every run, and `against` is a model or empty.
Comparison Compare(const std::vector<uint8_t>& labels, const std::vector<ComparedModel>& models,
                   const ComparisonOptions& options);

// What a Student-distributed number exceeds with a probability of 2.5 %, of at least one degree of
// freedom; infinity: the normal distribution's. Within 0.1 %.
double StudentQuantile(double degrees_of_freedom);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_COMPARISON_H_
