#include "trainer/evaluate/area_under_curve.h"

#include <algorithm>
#include <array>
#include <limits>

#include "collective/exchange_records.h"
#include "core/base/log.h"

namespace elastor {
namespace {

uint32_t ScoreOf(uint64_t row) { return static_cast<uint32_t>(row >> 1); }
int64_t StratumOf(uint64_t row) { return static_cast<int64_t>(row >> 33); }
bool IsPositive(uint64_t row) { return row & 1; }

// Cuts the scores in [smallest, largest] into ranges by rank, holding about equal numbers of rows.
class ScoreRanges {
 public:
  ScoreRanges(uint32_t smallest, uint32_t largest, int ranks)
      : ranks_(ranks), buckets_(std::bit_ceil(kBucketsOfRank * ranks)), smallest_(smallest) {
    const uint64_t span = uint64_t{largest} - smallest + 1;
    shift_ = std::max(0, static_cast<int>(std::bit_width(span - 1)) - std::countr_zero(buckets_));
  }

  // Counted per bucket of scores, summed over ranks before Cut.
  std::vector<int64_t> MakeHistogram() const { return std::vector<int64_t>(buckets_); }
  size_t Bucket(uint32_t score) const { return (score - smallest_) >> shift_; }

  // A rank takes whole buckets: the bucket in whose middle row number m of M falls goes to rank
  // m * ranks / M.
  void Cut(const std::vector<int64_t>& histogram) {
    int64_t total = 0;
    for (const int64_t count : histogram) total += count;
    int64_t below = 0;
    rank_of_bucket_.resize(buckets_);
    for (size_t b = 0; b < buckets_; ++b) {
      const auto middle = static_cast<unsigned __int128>(below + histogram[b] / 2);
      const auto rank = static_cast<int>(middle * ranks_ / total);
      rank_of_bucket_[b] = std::min(rank, ranks_ - 1);
      below += histogram[b];
    }
  }
  int Rank(uint32_t score) const { return rank_of_bucket_[Bucket(score)]; }

 private:
  // Most floats between the smallest and the largest score lie close to zero, where few scores are:
  // with so many buckets for each rank none has over twice the mean of logits N(-1.5, 1).
  static constexpr size_t kBucketsOfRank = 256;

  const int ranks_;
  const size_t buckets_;  // a power of two
  uint32_t smallest_;
  int shift_;
  std::vector<int> rank_of_bucket_;
};

// Sums over ranks of 128-bit numbers, in words of 32 bits that leave room for the carries.
Status SumOverRanks(Communicator& communicator, std::vector<unsigned __int128>* values) {
  constexpr int kWords = 4;
  std::vector<int64_t> words;
  for (const unsigned __int128 value : *values) {
    for (int i = 0; i < kWords; ++i) words.push_back(static_cast<uint32_t>(value >> (32 * i)));
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, words));
  for (size_t v = 0; v < values->size(); ++v) {
    unsigned __int128 sum = 0;
    for (int i = kWords - 1; i >= 0; --i) {
      sum = (sum << 32) + static_cast<uint64_t>(words[v * kWords + i]);
    }
    (*values)[v] = sum;
  }
  return OkStatus();
}

// The same for exact sums.
Status SumOverRanks(Communicator& communicator, std::span<ExactSum> sums) {
  std::vector<int64_t> words;
  for (const ExactSum& sum : sums) {
    const auto own = sum.ToWords();
    words.insert(words.end(), own.begin(), own.end());
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, words));
  std::array<int64_t, ExactSum::kWords> total;
  for (size_t s = 0; s < sums.size(); ++s) {
    std::copy_n(words.begin() + static_cast<int64_t>(s * total.size()), total.size(),
                total.begin());
    sums[s] = ExactSum::FromWords(total);
  }
  return OkStatus();
}

// Sends rows to the ranks of their scores' ranges. score_of: the score of a row, its OrderedScore.
// Rows come in no order. REQUIRES: a rank has a row.
template <typename ScoreOf>
Status ExchangeByScore(const ScoreOf& score_of, Communicator& communicator,
                       std::vector<uint64_t>* rows) {
  // -smallest and largest, so that one maximum gives both.
  std::array<int64_t, 2> bounds = {-int64_t{std::numeric_limits<uint32_t>::max()}, 0};
  for (const uint64_t row : *rows) {
    bounds[0] = std::max(bounds[0], -int64_t{score_of(row)});
    bounds[1] = std::max(bounds[1], int64_t{score_of(row)});
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceMax(Phase::kMetrics, bounds));

  ScoreRanges ranges(static_cast<uint32_t>(-bounds[0]), static_cast<uint32_t>(bounds[1]),
                     communicator.size());
  std::vector<int64_t> histogram = ranges.MakeHistogram();
  for (const uint64_t row : *rows) ++histogram[ranges.Bucket(score_of(row))];
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, histogram));
  ranges.Cut(histogram);

  // Sorted by score is sorted by rank, too.
  std::sort(rows->begin(), rows->end(),
            [&](uint64_t a, uint64_t b) { return score_of(a) < score_of(b); });
  std::vector<int64_t> counts(communicator.size());
  for (const uint64_t row : *rows) ++counts[ranges.Rank(score_of(row))];
  return ExchangeRecords(Phase::kMetrics, std::move(counts), communicator, rows);
}

}  // namespace

Status StratifiedAuc::ExchangeRows(Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(ExchangeByScore(ScoreOf, communicator, &rows_));
  std::sort(rows_.begin(), rows_.end());
  return OkStatus();
}

StatusOr<std::vector<int64_t>> StratifiedAuc::NegativesBelow(Communicator& communicator) const {
  std::vector<int64_t> mine(strata_);
  for (const uint64_t row : rows_) {
    if (!IsPositive(row)) ++mine[StratumOf(row)];
  }
  const int ranks = communicator.size();
  std::vector<int64_t> all(ranks * strata_);
  const std::vector<int64_t> bytes(ranks, strata_ * static_cast<int64_t>(sizeof(int64_t)));
  ELASTOR_RETURN_IF_ERROR(communicator.AllGatherV(Phase::kMetrics, mine.data(), all.data(), bytes));
  std::vector<int64_t> below(strata_);
  for (int r = 0; r < communicator.rank(); ++r) {
    for (int64_t s = 0; s < strata_; ++s) below[s] += all[r * strata_ + s];
  }
  return below;
}

StatusOr<std::vector<std::optional<double>>> StratifiedAuc::Reduce(
    std::span<const int64_t> positives, std::span<const int64_t> negatives,
    Communicator& communicator) {
  CHECK_EQ(static_cast<int64_t>(positives.size()), strata_);
  CHECK_EQ(static_cast<int64_t>(negatives.size()), strata_);
  std::vector<std::optional<double>> areas(strata_);
  // Alike on all ranks, as everything that decides upon an exchange.
  const auto has_area = [&](int64_t s) { return positives[s] > 0 && negatives[s] > 0; };
  int64_t defined = 0;
  for (int64_t s = 0; s < strata_; ++s) defined += has_area(s);
  if (defined == 0) return areas;

  ELASTOR_RETURN_IF_ERROR(ExchangeRows(communicator));
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> below, NegativesBelow(communicator));
  std::vector<unsigned __int128> won(strata_);
  for (auto row = rows_.begin(); row != rows_.end();) {
    const int64_t stratum = StratumOf(*row);
    PairCounter pairs(below[stratum]);
    for (; row != rows_.end() && StratumOf(*row) == stratum; ++row) {
      pairs.Add(ScoreOf(*row), IsPositive(*row));
    }
    won[stratum] = pairs.Won();
  }
  ELASTOR_RETURN_IF_ERROR(SumOverRanks(communicator, &won));
  for (int64_t s = 0; s < strata_; ++s) {
    if (has_area(s)) areas[s] = AreaUnderCurve(won[s], positives[s], negatives[s]);
  }
  return areas;
}

StatusOr<std::optional<double>> WeightedAuc::Reduce(Communicator& communicator) {
  const auto labelled = [](uint64_t row) { return LabelledWeight(static_cast<uint32_t>(row)); };
  ExactSum weights[2];  // of the negatives and of the positives
  for (const uint64_t row : rows_) weights[labelled(row).positive()].Add(labelled(row).weight());
  ELASTOR_RETURN_IF_ERROR(SumOverRanks(communicator, weights));
  const double negatives = weights[0].Value(), positives = weights[1].Value();
  if (!(negatives > 0 && positives > 0)) return std::optional<double>();

  const auto score_of = [](uint64_t row) { return static_cast<uint32_t>(row >> 32); };
  ELASTOR_RETURN_IF_ERROR(ExchangeByScore(score_of, communicator, &rows_));
  std::sort(rows_.begin(), rows_.end());
  ExactSum mine;
  for (const uint64_t row : rows_) {
    if (!labelled(row).positive()) mine.Add(labelled(row).weight());
  }
  const auto words = mine.ToWords();
  const int ranks = communicator.size();
  std::vector<int64_t> all(ranks * words.size());
  const std::vector<int64_t> bytes(ranks, sizeof(words));
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllGatherV(Phase::kMetrics, words.data(), all.data(), bytes));
  std::array<int64_t, ExactSum::kWords> below{};
  for (size_t i = 0; i < communicator.rank() * words.size(); ++i) below[i % words.size()] += all[i];

  WeightedPairs pairs(positives, negatives, ExactSum::FromWords(below));
  for (const uint64_t row : rows_) {
    pairs.Add(score_of(row), labelled(row).positive(), labelled(row).weight());
  }
  ExactSum won = pairs.Won();
  ELASTOR_RETURN_IF_ERROR(SumOverRanks(communicator, {&won, 1}));
  return std::optional<double>(won.Value());
}

StatusOr<GroupedAuc::Result> GroupedAuc::Reduce(Means means, Communicator& communicator) {
  // Sorted by group is sorted by rank, too.
  std::sort(rows_.begin(), rows_.end());
  std::vector<int64_t> counts(communicator.size());
  for (const Row& row : rows_) {
    ++counts[static_cast<unsigned __int128>(row.group) * counts.size() >> 64];
  }
  ELASTOR_RETURN_IF_ERROR(
      ExchangeRecords(Phase::kMetrics, std::move(counts), communicator, &rows_));
  std::sort(rows_.begin(), rows_.end());

  ExactSum sums[3];           // of rows * AUC; of weights * weighted AUC; of these weights
  int64_t counts_of[2] = {};  // rows and groups
  for (auto row = rows_.begin(); row != rows_.end();) {
    const auto begin = row;
    PairCounter pairs;
    int64_t classes[2] = {};
    ExactSum weights[2];
    for (; row != rows_.end() && row->group == begin->group; ++row) {
      const LabelledWeight labelled(row->labelled_weight);
      pairs.Add(row->score, labelled.positive());
      ++classes[labelled.positive()];
      weights[labelled.positive()].Add(labelled.weight());
    }
    if (classes[0] == 0 || classes[1] == 0) continue;
    const auto impressions = static_cast<double>(row - begin);
    sums[0].Add(impressions * AreaUnderCurve(pairs.Won(), classes[1], classes[0]));
    counts_of[0] += row - begin;
    ++counts_of[1];
    const double negatives = weights[0].Value(), positives = weights[1].Value();
    if (means == Means::kByRows || !(negatives > 0 && positives > 0)) continue;
    WeightedPairs weighted(positives, negatives);
    for (auto each = begin; each != row; ++each) {
      const LabelledWeight labelled(each->labelled_weight);
      weighted.Add(each->score, labelled.positive(), labelled.weight());
    }
    weights[0].Merge(weights[1]);
    sums[1].Add(weights[0].Value() * weighted.Won().Value());
    sums[2].Merge(weights[0]);
  }
  ELASTOR_RETURN_IF_ERROR(SumOverRanks(communicator, sums));
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, counts_of));
  Result result;
  result.groups = counts_of[1];
  if (result.groups > 0) result.mean = sums[0].Value() / static_cast<double>(counts_of[0]);
  if (sums[2].Value() > 0) result.weighted_mean = sums[1].Value() / sums[2].Value();
  return result;
}

}  // namespace elastor
