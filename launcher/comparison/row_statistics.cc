#include "launcher/comparison/row_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/base/canonical_math.h"
#include "core/base/log.h"
#include "core/base/random.h"

namespace elastor {
namespace {

std::vector<uint32_t> RowsByScore(std::span<const float> scores) {
  std::vector<uint32_t> rows(scores.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i);
  std::ranges::stable_sort(rows, {}, [&](uint32_t row) { return scores[row]; });
  return rows;
}

// The end of the group of equal scores that begins at `begin`.
size_t EndOfGroup(const std::vector<uint32_t>& rows, std::span<const float> scores, size_t begin) {
  size_t end = begin + 1;
  while (end < rows.size() && scores[rows[end]] == scores[rows[begin]]) ++end;
  return end;
}

}  // namespace

std::vector<double> Placements(std::span<const uint8_t> labels, std::span<const float> scores) {
  CHECK_EQ(labels.size(), scores.size());
  const auto positives = static_cast<double>(std::ranges::count(labels, 1));
  const double negatives = static_cast<double>(labels.size()) - positives;
  CHECK(positives > 0 && negatives > 0) << positives << " positives, " << negatives << " negatives";
  const std::vector<uint32_t> rows = RowsByScore(scores);
  std::vector<double> placements(labels.size());
  double positives_below = 0, negatives_below = 0;
  for (size_t begin = 0; begin < rows.size();) {
    const size_t end = EndOfGroup(rows, scores, begin);
    double equal_positives = 0;
    for (size_t i = begin; i < end; ++i) equal_positives += labels[rows[i]];
    const double equal_negatives = static_cast<double>(end - begin) - equal_positives;
    const double of_positive = (negatives_below + equal_negatives / 2) / negatives;
    const double of_negative =
        (positives - positives_below - equal_positives + equal_positives / 2) / positives;
    for (size_t i = begin; i < end; ++i) {
      placements[rows[i]] = labels[rows[i]] == 1 ? of_positive : of_negative;
    }
    positives_below += equal_positives;
    negatives_below += equal_negatives;
    begin = end;
  }
  return placements;
}

double MeanOfPositives(std::span<const uint8_t> labels, std::span<const double> values) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != 1) continue;
    sum += values[i];
    ++count;
  }
  return sum / count;
}

double DeLongVariance(std::span<const uint8_t> labels, std::span<const double> placements) {
  double variance = 0;
  for (const uint8_t label : {0, 1}) {
    std::vector<double> of_class;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == label) of_class.push_back(placements[i]);
    }
    variance += VarianceOfMean(of_class);
  }
  return variance;
}

double Mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double VarianceOfMean(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return squares / (count - 1) / count;
}

std::vector<double> Losses(std::span<const uint8_t> labels, std::span<const float> probabilities) {
  constexpr double kLeast = 1e-15;
  std::vector<double> losses(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const double p = probabilities[i];
    losses[i] = -CanonicalLog(std::max(labels[i] == 1 ? p : 1 - p, kLeast));
  }
  return losses;
}

std::vector<uint32_t> ResampleCounts(uint64_t seed, uint32_t resample, int64_t rows) {
  std::vector<uint32_t> counts(rows);
  PhiloxBlock block = {};
  for (int64_t i = 0; i < rows; ++i) {
    if (i % 4 == 0) block = Philox(seed, {static_cast<uint32_t>(i / 4), resample, 0, 0});
    ++counts[uint64_t{block[i % 4]} * rows >> 32];
  }
  return counts;
}

ResampledAuc::ResampledAuc(std::span<const uint8_t> labels, std::span<const float> scores)
    : rows_(RowsByScore(scores)) {
  for (size_t begin = 0; begin < rows_.size();) {
    begin = EndOfGroup(rows_, scores, begin);
    ends_.push_back(static_cast<uint32_t>(begin));
  }
  for (uint32_t& row : rows_) row = 2 * row + labels[row];
}

double ResampledAuc::Of(std::span<const uint32_t> counts) const {
  // Twice the pairs of a negative below a positive, and of equal scores once.
  uint64_t pairs = 0, negatives = 0, positives = 0;
  size_t i = 0;
  for (const uint32_t end : ends_) {
    uint64_t of_label[2] = {0, 0};
    for (; i < end; ++i) of_label[rows_[i] & 1] += counts[rows_[i] >> 1];
    pairs += of_label[1] * (2 * negatives + of_label[0]);
    negatives += of_label[0];
    positives += of_label[1];
  }
  if (positives == 0 || negatives == 0) return 0.5;
  return static_cast<double>(pairs) / 2 / static_cast<double>(positives) /
         static_cast<double>(negatives);
}

}  // namespace elastor
