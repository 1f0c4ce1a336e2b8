#ifndef ELASTOR_LAUNCHER_COMPARISON_ROW_STATISTICS_H_
#define ELASTOR_LAUNCHER_COMPARISON_ROW_STATISTICS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace elastor {

// What the rows of a split say about predictions of binary labels. Sums over rows are taken in the
// order of the rows.

// The placement of every row (Hanley and Hajian-Tilaki, 1997): of a positive the share of negatives
// with a lower score, of a negative the share of positives with a higher one, equal scores counting
// half. The mean over either class is the AUC. REQUIRES: both classes occur.
std::vector<double> Placements(std::span<const uint8_t> labels, std::span<const float> scores);

// Mean of the positives' values: of placements, the AUC.
double MeanOfPositives(std::span<const uint8_t> labels, std::span<const double> values);

// DeLong's variance (DeLong, DeLong and Clarke-Pearson, 1988) of an AUC with these placements, of a
// difference or a mean of AUCs with the difference or the mean of their placements: s1^2 / n1 +
// s0^2 / n0, the sample variances within the classes. 0 for a class of one row.
double DeLongVariance(std::span<const uint8_t> labels, std::span<const double> placements);

double Mean(std::span<const double> values);
// Of the mean: s^2 / n. 0 for one value.
double VarianceOfMean(std::span<const double> values);

// Cross-entropy of every row; probabilities are kept 1e-15 away from 0 and 1.
std::vector<double> Losses(std::span<const uint8_t> labels, std::span<const float> probabilities);

// How often every row is in a resample of n rows out of n, drawn with replacement: a function of
// (seed, resample, rows).
std::vector<uint32_t> ResampleCounts(uint64_t seed, uint32_t resample, int64_t rows);

// The AUC of resampled rows in linear time: the rows are sorted once.
class ResampledAuc {
 public:
  ResampledAuc(std::span<const uint8_t> labels, std::span<const float> scores);
  // Every row counted counts[row] times; 0.5 when a class is missing.
  double Of(std::span<const uint32_t> counts) const;

 private:
  std::vector<uint32_t> rows_;  // row and label in the lowest bit, by increasing score
  std::vector<uint32_t> ends_;  // of the groups of equal scores, in rows_
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_ROW_STATISTICS_H_
