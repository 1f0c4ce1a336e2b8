#ifndef ELASTOR_TRAINER_EVALUATE_SPECTRUM_RECORD_H_
#define ELASTOR_TRAINER_EVALUATE_SPECTRUM_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// The effective ranks of one probe over the measured rows, by one of their definitions
// (docs/reference/training.md, "Effective ranks").
struct RankRecord {
  double mean = 0;
  double stddev = 0;  // of the rows, not of the mean
  // Rows in kRankBins bins of equal width over [0, max_rank]; bins hold their lower edge, the last
  // both.
  std::vector<int64_t> histogram = {};
  // From the probe before to this one, row by row; of the first probe 0.
  double change_mean = 0;
  double change_stddev = 0;
  int64_t rising = 0;  // rows
  int64_t falling = 0;
};
inline constexpr int64_t kRankBins = 1024;

struct SpectrumRecord {
  int64_t step = 0;
  std::string split = {};
  std::string stage = {};  // the name of the probe
  int64_t samples = 0;     // rows measured
  int64_t max_rank = 0;    // min(T, D)
  RankRecord stable = {};
  RankRecord entropy = {};
  std::vector<double> profile = {};  // mean of sigma_i / sigma_1, i = 1..max_rank
};

// Means of the effective ranks of a linear head's scoring matrices, W_o [T, D] in output o =
// <W_o, X> + b_o: one of every label, of labels of classes one of every class.
struct ScoringRecord {
  int64_t step = 0;
  int64_t matrices = 0;
  int64_t max_rank = 0;  // min(T, D)
  double stable = 0;
  double entropy = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_SPECTRUM_RECORD_H_
