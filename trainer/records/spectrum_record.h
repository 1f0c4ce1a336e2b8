#ifndef ELASTOR_TRAINER_RECORDS_SPECTRUM_RECORD_H_
#define ELASTOR_TRAINER_RECORDS_SPECTRUM_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/records/record_field.h"

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

// The names are "stable_rank_" or "entropy_rank_" and these.
inline constexpr RecordField<RankRecord> kRankFields[] = {
    {.name = "mean", .value = &RankRecord::mean},
    {.name = "stddev", .value = &RankRecord::stddev},
};

inline constexpr RecordField<SpectrumRecord> kSpectrumFields[] = {
    {.name = "step", .value = &SpectrumRecord::step},
    {.name = "split", .value = &SpectrumRecord::split},
    {.name = "stage", .value = &SpectrumRecord::stage},
    {.name = "samples", .value = &SpectrumRecord::samples},
    {.name = "max_rank", .value = &SpectrumRecord::max_rank},
};

inline constexpr RecordField<ScoringRecord> kScoringFields[] = {
    {.name = "step", .value = &ScoringRecord::step},
    {.name = "matrices", .value = &ScoringRecord::matrices},
    {.name = "max_rank", .value = &ScoringRecord::max_rank},
    {.name = "stable_rank_mean", .value = &ScoringRecord::stable, .tag = "scoring_rank/stable"},
    {.name = "entropy_rank_mean", .value = &ScoringRecord::entropy, .tag = "scoring_rank/entropy"},
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_SPECTRUM_RECORD_H_
