#ifndef ELASTOR_TRAINER_EVALUATE_SPECTRUM_RECORD_H_
#define ELASTOR_TRAINER_EVALUATE_SPECTRUM_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// The effective ranks of one probe over the measured rows (docs/models.md, "Effective ranks").
struct SpectrumRecord {
  int64_t step = 0;
  std::string split = {};
  std::string stage = {};  // the name of the probe
  int64_t samples = 0;     // rows measured
  int64_t max_rank = 0;    // min(T, D)
  double stable_rank_mean = 0;
  double entropy_rank_mean = 0;
  double stable_rank_stddev = 0;  // of the rows, not of the mean
  double entropy_rank_stddev = 0;
  // Rows in bins of equal width over [0, max_rank]; bins hold their lower edge, the last both.
  std::vector<int64_t> stable_rank_histogram = {};
  std::vector<int64_t> entropy_rank_histogram = {};
  std::vector<double> profile = {};  // mean of sigma_i / sigma_1, i = 1..max_rank
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_SPECTRUM_RECORD_H_
