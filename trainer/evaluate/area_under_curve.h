#ifndef ELASTOR_TRAINER_EVALUATE_AREA_UNDER_CURVE_H_
#define ELASTOR_TRAINER_EVALUATE_AREA_UNDER_CURVE_H_

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"

namespace elastor {

// Maps a score to an unsigned integer, keeping the order; -0 and +0 are one score. REQUIRES: not
// NaN.
inline uint32_t OrderedScore(float score) {
  constexpr uint32_t kSign = uint32_t{1} << 31;
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score);
  return bits & kSign ? ~bits : bits | kSign;
}

// Counts twice the (positive, negative) pairs in which the positive scores higher; a tie counts
// half. The count is the sum over distinct scores of pos * (2 * neg_below + neg_equal). REQUIRES:
// rows come in ascending order of scores.
class PairCounter {
 public:
  // negatives_below: number of negatives that score below all rows that will come.
  explicit PairCounter(int64_t negatives_below = 0) : negatives_below_(negatives_below) {}

  void Add(uint32_t score, bool positive) {
    if (score != score_) EndTie();
    score_ = score;
    ++(positive ? tied_positives_ : tied_negatives_);
  }
  unsigned __int128 Won() {
    EndTie();
    return won_;
  }

 private:
  void EndTie() {
    won_ +=
        static_cast<unsigned __int128>(tied_positives_) * (2 * negatives_below_ + tied_negatives_);
    negatives_below_ += tied_negatives_;
    tied_positives_ = 0;
    tied_negatives_ = 0;
  }

  int64_t negatives_below_;
  int64_t tied_positives_ = 0;
  int64_t tied_negatives_ = 0;
  uint32_t score_ = 0;
  unsigned __int128 won_ = 0;
};

// Returns the AUC, won / (2 P N). REQUIRES: both classes occur.
inline double AreaUnderCurve(unsigned __int128 won, int64_t positives, int64_t negatives) {
  const auto pairs = static_cast<unsigned __int128>(positives) * negatives;
  return static_cast<double>(won) / static_cast<double>(2 * pairs);
}

// Computes the AUC of each of several strata in exact integers. Strata are sets of rows over all
// ranks and may overlap; the whole split is one. Each rank takes a range of scores; a histogram
// cuts the ranges so that all hold about the same number of rows. Every row's score travels once
// per stratum (8 bytes), each rank sorts its range, and only counts are summed.
//
// Memory: 8 to 16 bytes per row and stratum that it is in, as a vector grows, and 8 more during
// Reduce. Thread-compatible.
class StratifiedAuc {
 public:
  explicit StratifiedAuc(int64_t strata) : strata_(strata) {}

  // REQUIRES: not NaN.
  void Add(int64_t stratum, float score, bool positive) {
    rows_.push_back(static_cast<uint64_t>(stratum) << 33 | uint64_t{OrderedScore(score)} << 1 |
                    static_cast<uint64_t>(positive));
  }

  // Returns the AUC of every stratum; none where a class is missing. `positives` and `negatives`
  // are the counts of every stratum over all ranks. Collective; called once.
  StatusOr<std::vector<std::optional<double>>> Reduce(std::span<const int64_t> positives,
                                                      std::span<const int64_t> negatives,
                                                      Communicator& communicator);

 private:
  // Sends rows to the ranks of their score ranges and sorts them there.
  Status ExchangeRows(Communicator& communicator);
  // Returns, for every stratum, the number of negatives with scores in the ranges of lower ranks.
  StatusOr<std::vector<int64_t>> NegativesBelow(Communicator& communicator) const;

  const int64_t strata_;
  std::vector<uint64_t> rows_;  // stratum, score (32 bits), positive (1 bit)
};

// Computes gAUC: the mean of the groups' AUC weighted by their rows ("impressions"), over groups
// with rows of both classes. A group's rows may lie on several ranks. Each row goes to the rank
// that the group's hash names (16 bytes), which counts pairs in exact integers. The groups' addends
// are summed exactly (core/base/exact_sum.h).
//
// Memory: 16 to 32 bytes per row, as a vector grows, and 16 more during Reduce. Thread-compatible.
class GroupedAuc {
 public:
  // Adds a row. `group` is a hash, evenly spread over 64 bits. REQUIRES: the score is not NaN.
  void Add(uint64_t group, float score, bool positive) {
    rows_.push_back({group, OrderedScore(score), positive});
  }

  struct Result {
    std::optional<double> mean;  // none: no group with both classes
    int64_t groups = 0;          // number of groups with both classes
  };
  // Sums over all ranks. Collective; called once.
  StatusOr<Result> Reduce(Communicator& communicator);

 private:
  struct Row {
    uint64_t group;
    uint32_t score;
    uint32_t positive;
    auto operator<=>(const Row&) const = default;
  };
  std::vector<Row> rows_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_AREA_UNDER_CURVE_H_
