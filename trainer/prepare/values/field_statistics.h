#ifndef ELASTOR_TRAINER_PREPARE_VALUES_FIELD_STATISTICS_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_FIELD_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/prepare/plan.h"
#include "trainer/prepare/values/measure.h"
#include "trainer/prepare/values/rank_values.h"

namespace elastor {

// stats.json of a prepared set (docs/reference/data_format.md): what its fields hold, by split, and
// how far the splits are apart. warnings: the lines of DataWarnings.
std::string StatisticsJson(const PreparePlan& plan, const Measures& measures,
                           const RankedValues& ranked, int64_t bad_rows,
                           const std::vector<std::string>& warnings);

// The Jensen-Shannon divergence, in bits (0: equal, 1: nothing in common), of the distributions
// that two histograms stand for: with m = (p + q) / 2, the mean of sum p log2(p / m) and
// sum q log2(q / m). 0 when one is empty.
double HistogramDivergence(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_FIELD_STATISTICS_H_
