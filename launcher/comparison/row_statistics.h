#ifndef ELASTOR_LAUNCHER_COMPARISON_ROW_STATISTICS_H_
#define ELASTOR_LAUNCHER_COMPARISON_ROW_STATISTICS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace elastor {

// Statistics of binary predictions over the rows of a split. Sums over rows are taken in the order
// of the rows.

// Returns the placement of every row (Hanley and Hajian-Tilaki, 1997). A positive's placement is
// the share of negatives with a lower score, a negative's the share of positives with a higher one;
// equal scores count half. The mean over either class is the AUC. REQUIRES: both classes occur.
std::vector<double> Placements(std::span<const uint8_t> labels, std::span<const float> scores);

// Returns the mean of the positives' values. For placements it is the AUC.
double MeanOfPositives(std::span<const uint8_t> labels, std::span<const double> values);

// Returns DeLong's variance (DeLong, DeLong and Clarke-Pearson, 1988) of an AUC with these
// placements: s1^2 / n1 + s0^2 / n0, with the sample variances within the classes. For a difference
// or a mean of AUCs, pass the difference or the mean of their placements. A class of one row
// contributes 0.
double DeLongVariance(std::span<const uint8_t> labels, std::span<const double> placements);

double Mean(std::span<const double> values);
// Returns the variance of the mean, s^2 / n; 0 for one value.
double VarianceOfMean(std::span<const double> values);

// Returns the cross-entropy of every row. Probabilities are kept 1e-15 away from 0 and 1.
std::vector<double> Losses(std::span<const uint8_t> labels, std::span<const float> probabilities);

// Returns how often every row is in a resample of n rows out of n, drawn with replacement. Depends
// on (seed, resample, rows) alone.
std::vector<uint32_t> ResampleCounts(uint64_t seed, uint32_t resample, int64_t rows);

// Computes the AUC of resampled rows in linear time, because it sorts the rows only once.
class ResampledAuc {
 public:
  ResampledAuc(std::span<const uint8_t> labels, std::span<const float> scores);
  // Returns the AUC with every row counted counts[row] times; 0.5 when a class is missing.
  double Of(std::span<const uint32_t> counts) const;

 private:
  std::vector<uint32_t> rows_;  // row and label in the lowest bit, by increasing score
  std::vector<uint32_t> ends_;  // ends, in rows_, of the groups of equal scores
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_ROW_STATISTICS_H_
