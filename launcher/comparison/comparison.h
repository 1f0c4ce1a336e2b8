#ifndef ELASTOR_LAUNCHER_COMPARISON_COMPARISON_H_
#define ELASTOR_LAUNCHER_COMPARISON_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/scaling_law/bootstrap.h"

namespace elastor {

// One run's predictions of the split's rows, in the order of the rows.
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
// A difference is uncertain for two reasons: other rows would change it, and so would other seeds.
// For the rows, a model's metric is the mean over its seeds, and all models are measured on the
// same rows. `rows` is the central part of a bootstrap that draws rows. `delong` is the normal
// approximation, with DeLong's variance for the AUC and the variance of a mean for the logloss. For
// the seeds, runs are independent: `seeds` is Student's interval, or Welch's for a difference.
// `both` adds the two variances, less the part of the rows' that the runs' spread has in it: what
// each run sees in its own way. Its degrees of freedom are Welch's and Satterthwaite's. An order of
// models is claimed by it, with Holm's correction for the number of pairs.
struct Uncertain {
  double value = 0;
  std::optional<Interval> rows;  // without resamples: none
  Interval delong;
  std::optional<Interval> seeds;  // one run: none
  std::optional<Interval> both;
  // The true difference from 0 that a sample like this one detects with a probability of 80 %: the
  // half-width of `both` plus 0.84 standard errors.
  std::optional<double> smallest;
  // Two-sided p-value of 0 by `both`, and of a difference the same after Holm's correction for all
  // pairs of the comparison.
  std::optional<double> p, holm;

  // Returns whether the difference is told from 0 by the corrected p.
  bool differs_from_0() const { return holm && *holm <= 0.05; }
};

struct ModelFigures {
  Uncertain auc, logloss;
  std::optional<double> gauc;  // mean over the runs
  std::optional<Interval> gauc_seeds;
};

// Figures of the difference first - second. `first` and `second` are indices in the list of models.
struct PairFigures {
  size_t first = 0, second = 0;
  Uncertain auc, logloss;
};

struct ComparisonOptions {
  int resamples = 1000;  // number of bootstrap resamples of the rows; 0: none
  uint64_t seed = 1;     // seed of the resamples
  // Name of the model that every pair has as its first; empty: all pairs are compared.
  std::string against = {};
};

struct Comparison {
  std::vector<ModelFigures> models;
  std::vector<PairFigures> pairs;
};

// Compares models. The result is deterministic, and a model's figures do not depend on the other
// models. REQUIRES: labels of both classes; one probability per label in every run; `against` names
// a model or is empty.
Comparison Compare(const std::vector<uint8_t>& labels, const std::vector<ComparedModel>& models,
                   const ComparisonOptions& options);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_COMPARISON_H_
