#ifndef ELASTOR_TRAINER_EVALUATE_AREA_UNDER_CURVE_H_
#define ELASTOR_TRAINER_EVALUATE_AREA_UNDER_CURVE_H_

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "core/base/exact_sum.h"
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

// Like PairCounter, where a pair counts as much as the product of its rows' weights. The sums of
// weights are exact, and each is rounded once, so the order of tied rows does not matter.
class WeightedPairs {
 public:
  // positives, negatives: weights of the classes, above 0. negatives_below: weight of the negatives
  // that score below all rows that will come.
  WeightedPairs(double positives, double negatives, const ExactSum& negatives_below = {})
      : positives_(positives), negatives_(negatives), negatives_below_(negatives_below) {}

  void Add(uint32_t score, bool positive, float weight) {
    if (score != score_) EndTie();
    score_ = score;
    (positive ? tied_positives_ : tied_negatives_).Add(weight);
  }
  // Returns the share of the weight of all pairs that these rows won: the sum over distinct scores
  // of pos / positives * (neg_below + neg_equal / 2) / negatives.
  ExactSum Won() {
    EndTie();
    return won_;
  }

 private:
  void EndTie() {
    const double lost = negatives_below_.Value() + tied_negatives_.Value() / 2;
    won_.Add(tied_positives_.Value() / positives_ * (lost / negatives_));
    negatives_below_.Merge(tied_negatives_);
    tied_positives_ = {};
    tied_negatives_ = {};
  }

  const double positives_;
  const double negatives_;
  ExactSum negatives_below_, tied_positives_, tied_negatives_, won_;
  uint32_t score_ = 0;
};

// A row's class and weight in 32 bits: the weight's bits, with the class in the place of the sign.
// REQUIRES: the weight is not negative.
class LabelledWeight {
 public:
  LabelledWeight(bool positive, float weight)
      : bits_((std::bit_cast<uint32_t>(weight) & ~kSign) | (positive ? kSign : 0)) {}
  explicit LabelledWeight(uint32_t bits) : bits_(bits) {}

  uint32_t bits() const { return bits_; }
  bool positive() const { return bits_ & kSign; }
  float weight() const { return std::bit_cast<float>(bits_ & ~kSign); }

 private:
  static constexpr uint32_t kSign = uint32_t{1} << 31;
  uint32_t bits_;
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

// Computes the AUC of weighted rows (WeightedPairs). Rows travel as in StratifiedAuc, and all sums
// over rows are exact, so the result has the same bits on any number of ranks.
//
// Memory: as StratifiedAuc of one stratum. Thread-compatible.
class WeightedAuc {
 public:
  // REQUIRES: the score is not NaN, the weight not negative.
  void Add(float score, bool positive, float weight) {
    rows_.push_back(uint64_t{OrderedScore(score)} << 32 | LabelledWeight(positive, weight).bits());
  }

  // Returns the AUC; none where the weights of a class sum to 0. Collective; called once.
  StatusOr<std::optional<double>> Reduce(Communicator& communicator);

 private:
  std::vector<uint64_t> rows_;  // score (32 bits), LabelledWeight (32 bits)
};

// Computes gAUC: the mean of the groups' AUC weighted by their rows ("impressions"), over groups
// with rows of both classes. A group's rows may lie on several ranks. Each row goes to the rank
// that the group's hash names (16 bytes), which counts pairs in exact integers. The groups' addends
// are summed exactly (core/base/exact_sum.h).
//
// The weighted gAUC is the mean of the groups' weighted AUC, weighted by the weights of their rows,
// over groups where both classes have weight.
//
// Memory: 16 to 32 bytes per row, as a vector grows, and 16 more during Reduce. Thread-compatible.
class GroupedAuc {
 public:
  // Adds a row. `group` is a hash, evenly spread over 64 bits. REQUIRES: the score is not NaN.
  void Add(uint64_t group, float score, bool positive, float weight) {
    rows_.push_back({group, OrderedScore(score), LabelledWeight(positive, weight).bits()});
  }

  struct Result {
    std::optional<double> mean;           // none: no group with both classes
    int64_t groups = 0;                   // number of groups with both classes
    std::optional<double> weighted_mean;  // none: not asked for, or no such group
  };
  enum class Means { kByRows, kByRowsAndWeights };
  // Sums over all ranks. Collective; called once.
  StatusOr<Result> Reduce(Means means, Communicator& communicator);

 private:
  struct Row {
    uint64_t group;
    uint32_t score;
    uint32_t labelled_weight;
    auto operator<=>(const Row&) const = default;
  };
  std::vector<Row> rows_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_AREA_UNDER_CURVE_H_
