#ifndef ELASTOR_TRAINER_RECORDS_SPECTRUM_RECORD_H_
#define ELASTOR_TRAINER_RECORDS_SPECTRUM_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// Effective ranks of one probe over the measured rows, by one of the two definitions
// (docs/reference/training.md, "Effective ranks").
struct RankRecord {
  double mean = 0;
  double stddev = 0;  // standard deviation over the rows, not of the mean
  // Rows in kRankBins bins of equal width over [0, max_rank]; bins hold their lower edge, the last
  // both.
  std::vector<int64_t> histogram = {};
  // Change of the rank from the previous probe to this one, row by row; 0 for the first probe.
  double change_mean = 0;
  double change_stddev = 0;
  int64_t rising = 0;  // rows whose rank rises; falling: rows whose rank falls
  int64_t falling = 0;
};
inline constexpr int64_t kRankBins = 1024;

struct SpectrumRecord {
  int64_t step = 0;
  std::string split = {};
  std::string stage = {};  // the name of the probe
  int64_t samples = 0;     // number of measured rows
  int64_t max_rank = 0;    // min(T, D)
  RankRecord stable = {};
  RankRecord entropy = {};
  std::vector<double> profile = {};  // mean of sigma_i / sigma_1, i = 1..max_rank
};

// Mean effective ranks of a linear head's scoring matrices, W_o [T, D] in output o = <W_o, X> +
// b_o. There is one matrix per label or, for class labels, one per class.
struct ScoringRecord {
  int64_t step = 0;
  int64_t matrices = 0;
  int64_t max_rank = 0;  // min(T, D)
  double stable = 0;
  double entropy = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_SPECTRUM_RECORD_H_
