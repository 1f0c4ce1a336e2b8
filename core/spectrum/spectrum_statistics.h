#ifndef ELASTOR_CORE_SPECTRUM_SPECTRUM_STATISTICS_H_
#define ELASTOR_CORE_SPECTRUM_SPECTRUM_STATISTICS_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/exact_sum.h"
#include "core/spectrum/spectrum.h"

namespace elastor {

// Statistics of the effective ranks of many rows. Sums are exact, so the statistics do not depend
// on how rows are spread over threads and ranks. Thread-compatible: use one object per thread and
// merge them.
class SpectrumStatistics {
 public:
  static constexpr int64_t kBins = 1024;

  explicit SpectrumStatistics(int64_t max_rank) : profile_(max_rank) {}

  // Adds row i of the last Measure. `before`, if not null, holds the same row's ranks at the
  // previous stage. REQUIRES: the spectrum's max_rank equals this object's.
  void Add(const Spectrum& spectrum, int64_t i, const EffectiveRank* before = nullptr);
  void Merge(const SpectrumStatistics& other);

  // Words for an integer all-reduce. SetWords, on an object of equal max_rank, turns their
  // element-wise sum over ranks into the statistics of all rows.
  int64_t word_count() const;
  void AppendWords(std::vector<int64_t>* words) const;
  void SetWords(std::span<const int64_t> words);

  int64_t rows() const { return rows_; }
  // Standard deviations are over rows and divide by rows - 1; for one row they are 0.
  struct Moments {
    double mean = 0;
    double stddev = 0;
  };
  struct Distribution {
    Moments rank;
    Moments change;      // rank - before, over all rows; 0 if Add got no `before`
    int64_t rising = 0;  // number of rows whose rank is above `before`
    int64_t falling = 0;
    // Bin b counts ranks in [b, b + 1) * max_rank / kBins; the last bin also counts all larger
    // ranks. No bin counts NaN.
    std::array<int64_t, kBins> histogram{};
  };
  // REQUIRES: rows() > 0.
  Distribution stable() const { return DistributionOf(stable_); }
  Distribution entropy() const { return DistributionOf(entropy_); }
  // Returns the means of s_n / s_1, which counts as 0 for a zero matrix. REQUIRES: rows() > 0.
  std::vector<double> profile() const;

 private:
  struct Kind {
    ExactSum sum;
    ExactSum squares;
    ExactSum change_sum;
    ExactSum change_squares;
    int64_t rising = 0;
    int64_t falling = 0;
    std::array<int64_t, kBins> histogram{};
  };
  void AddTo(double rank, Kind* kind) const;
  static void AddChange(double change, Kind* kind);
  Moments MomentsOf(const ExactSum& sum, const ExactSum& squares) const;
  Distribution DistributionOf(const Kind& kind) const;
  // Visits every integer and every sum of an object, in one fixed order.
  template <typename Self, typename VisitCount, typename VisitSum>
  static void ForEach(Self& self, const VisitCount& visit_count, const VisitSum& visit_sum);

  int64_t rows_ = 0;
  Kind stable_;
  Kind entropy_;
  std::vector<ExactSum> profile_;
};

// Returns the rank below which a share q of a histogram's rows lies. Rows count as evenly spread
// over their bin, [b, b + 1) * max_rank / size. Without rows it returns NaN. REQUIRES: 0 <= q <= 1.
double HistogramQuantile(std::span<const int64_t> histogram, double max_rank, double q);

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SPECTRUM_STATISTICS_H_
