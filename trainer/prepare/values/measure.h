#ifndef ELASTOR_TRAINER_PREPARE_VALUES_MEASURE_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_MEASURE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/exact_sum.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/rows/row_places.h"
#include "trainer/prepare/text_pass.h"
#include "trainer/prepare/values/distinct_keys.h"

namespace elastor {

// Statistics of a numeric field's transformed values in one split. Sums are exact and bins are
// counts, so nothing depends on the order of rows or threads.
struct NumericTally {
  // 0: missing; 1: zero; then by sign, binary exponent from -32 to 95 and two bits of fraction.
  static constexpr int kBins = 2 + 2 * 128 * 4;
  static int BinOf(double value);
  void Add(double value, int64_t times);  // NaN is missing
  // REQUIRES: equal shift and scale.
  void Merge(const NumericTally& other);
  double Mean() const;
  double Stddev() const;  // population; 1 when all values are equal or there are none
  // Returns whether the sums give mean and deviation to 1e-9. They do not if the deviation is small
  // beside the distance of mean and `shift`, or if values leave the range of the sums.
  bool Settled() const;
  // Returns an empty tally that takes the sums about this one's mean, to be filled from the rows
  // again. After at most three of them a tally is settled.
  NumericTally Recentred() const;
  double ScaledVariance() const;  // of (value - shift) * scale

  // Sums are those of (value - shift) * scale and of its square; `scale` is a power of two.
  double shift = 0;
  double scale = 1;
  ExactSum sum;
  ExactSum squares;
  int64_t count = 0;
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  std::vector<int64_t> bins = std::vector<int64_t>(kBins, 0);
};

// The keys of a column in one split.
struct KeyTally {
  int64_t missing = 0;  // how often key 0 occurs
  DistinctKeys others;
};

struct SplitTally {
  // Counts of one label: rows that have it, and rows where it is 1.
  struct Label {
    int64_t rows = 0;
    int64_t positives = 0;
  };
  int64_t rows = 0;
  int64_t weighted_rows = 0;  // whose weight is above 0; all where the plan has no weights
  int64_t earliest =
      std::numeric_limits<int64_t>::max();  // time of a row, where the plan has times
  int64_t latest = std::numeric_limits<int64_t>::min();
  std::vector<Label> labels;
  std::vector<NumericTally> numeric;  // by field
  std::vector<int64_t> values;        // by column of PreparePlan::ids
  std::vector<int64_t> empty_bags;    // the same
  std::vector<KeyTally> keys;         // the same; of keyed columns
};

// How often each value of a run occurs in each split: u32[size], in the order of the run, at `at`
// of the file of counts; -1 for a split without rows of the segment.
struct RunCounts {
  std::array<int64_t, 3> at = {-1, -1, -1};
};

struct Measures {
  std::array<SplitTally, 3> splits;
  std::vector<std::vector<RunCounts>> counts;  // by segment, then column
};

// Reads all rows: statistics of numeric fields, and counts of the values of every run. One reading
// is enough for ordinary numbers; NumericTally::Settled says which fields take another. `values` is
// mapped.
StatusOr<Measures> MeasureRows(const PrepareOptions& options, const PreparePlan& plan,
                               const TextPassResult& text, const SplitPlaces& places,
                               const WorkFile& rows, const WorkFile& values, ThreadPool* pool,
                               WorkFile* counts);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_MEASURE_H_
