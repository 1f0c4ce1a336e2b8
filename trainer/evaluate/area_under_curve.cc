#include "trainer/evaluate/area_under_curve.h"

#include <algorithm>
#include <array>
#include <limits>

#include "collective/exchange_records.h"
#include "core/base/exact_sum.h"
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

}  // namespace

Status StratifiedAuc::ExchangeRows(Communicator& communicator) {
  // -smallest and largest, so that one maximum gives both.
  std::array<int64_t, 2> bounds = {-int64_t{std::numeric_limits<uint32_t>::max()}, 0};
  for (const uint64_t row : rows_) {
    bounds[0] = std::max(bounds[0], -int64_t{ScoreOf(row)});
    bounds[1] = std::max(bounds[1], int64_t{ScoreOf(row)});
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceMax(Phase::kMetrics, bounds));

  ScoreRanges ranges(static_cast<uint32_t>(-bounds[0]), static_cast<uint32_t>(bounds[1]),
                     communicator.size());
  std::vector<int64_t> histogram = ranges.MakeHistogram();
  for (const uint64_t row : rows_) ++histogram[ranges.Bucket(ScoreOf(row))];
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, histogram));
  ranges.Cut(histogram);

  // Sorted by score is sorted by rank, too.
  std::sort(rows_.begin(), rows_.end(),
            [](uint64_t a, uint64_t b) { return ScoreOf(a) < ScoreOf(b); });
  std::vector<int64_t> counts(communicator.size());
  for (const uint64_t row : rows_) ++counts[ranges.Rank(ScoreOf(row))];
  ELASTOR_RETURN_IF_ERROR(
      ExchangeRecords(Phase::kMetrics, std::move(counts), communicator, &rows_));
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

StatusOr<GroupedAuc::Result> GroupedAuc::Reduce(Communicator& communicator) {
  // Sorted by group is sorted by rank, too.
  std::sort(rows_.begin(), rows_.end());
  std::vector<int64_t> counts(communicator.size());
  for (const Row& row : rows_) {
    ++counts[static_cast<unsigned __int128>(row.group) * counts.size() >> 64];
  }
  ELASTOR_RETURN_IF_ERROR(
      ExchangeRecords(Phase::kMetrics, std::move(counts), communicator, &rows_));
  std::sort(rows_.begin(), rows_.end());

  ExactSum sum;
  int64_t rows = 0;
  int64_t groups = 0;
  for (auto row = rows_.begin(); row != rows_.end();) {
    const auto begin = row;
    PairCounter pairs;
    int64_t positives = 0;
    for (; row != rows_.end() && row->group == begin->group; ++row) {
      pairs.Add(row->score, row->positive);
      positives += row->positive;
    }
    const int64_t negatives = (row - begin) - positives;
    if (positives == 0 || negatives == 0) continue;
    const auto impressions = static_cast<double>(row - begin);
    sum.Add(impressions * AreaUnderCurve(pairs.Won(), positives, negatives));
    rows += row - begin;
    ++groups;
  }
  const auto part = sum.ToWords();
  std::vector<int64_t> words(part.begin(), part.end());
  words.insert(words.end(), {rows, groups});
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, words));
  std::array<int64_t, ExactSum::kWords> total;
  std::copy_n(words.begin(), total.size(), total.begin());
  Result result;
  result.groups = words.back();
  if (result.groups > 0) {
    result.mean = ExactSum::FromWords(total).Value() / static_cast<double>(words[ExactSum::kWords]);
  }
  return result;
}

}  // namespace elastor
