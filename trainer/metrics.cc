#include "trainer/metrics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/canonical_math.h"
#include "glog/logging.h"

namespace elastor {
namespace {

constexpr int kNegative = 0;
constexpr int kPositive = 1;

// Unsigned integers in the order of the floats; -0 and +0 are one score. REQUIRES: not NaN.
uint32_t OrderedKey(float score) {
  constexpr uint32_t kSign = uint32_t{1} << 31;
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score);
  return bits & kSign ? ~bits : bits | kSign;
}

// Cuts the keys in [smallest, largest] into ranges by rank, holding about equal numbers of rows.
class ScoreRanges {
 public:
  ScoreRanges(uint32_t smallest, uint32_t largest) : smallest_(smallest) {
    const uint64_t span = uint64_t{largest} - smallest + 1;
    shift_ = std::max(0, static_cast<int>(std::bit_width(span - 1)) - kBits);
  }

  // Counted per bucket of keys, summed over ranks before Cut.
  std::vector<int64_t> MakeHistogram() const { return std::vector<int64_t>(kBuckets); }
  size_t Bucket(uint32_t key) const { return (key - smallest_) >> shift_; }

  // A rank takes whole buckets: the bucket in whose middle row number m of M falls goes to rank
  // m * ranks / M.
  void Cut(const std::vector<int64_t>& histogram, int ranks) {
    int64_t total = 0;
    for (const int64_t count : histogram) total += count;
    int64_t below = 0;
    rank_of_bucket_.resize(kBuckets);
    for (size_t b = 0; b < kBuckets; ++b) {
      const auto middle = static_cast<unsigned __int128>(below + histogram[b] / 2);
      const auto rank = static_cast<int>(middle * ranks / total);
      rank_of_bucket_[b] = std::min(rank, ranks - 1);
      below += histogram[b];
    }
  }
  int Rank(uint32_t key) const { return rank_of_bucket_[Bucket(key)]; }

 private:
  static constexpr int kBits = 14;
  static constexpr size_t kBuckets = size_t{1} << kBits;

  uint32_t smallest_;
  int shift_;
  std::vector<int> rank_of_bucket_;
};

// The keys of this rank's range, by label, sorted.
struct OwnedKeys {
  std::vector<uint32_t> keys[2];
};

// Sends every key to the rank of its range: first the lengths, then the keys of both labels.
Status ExchangeKeys(const std::vector<uint32_t> (&keys)[2], const ScoreRanges& ranges,
                    Communicator& communicator, OwnedKeys* owned) {
  const int ranks = communicator.size();
  for (const int label : {kNegative, kPositive}) {
    std::vector<int64_t> send_counts(ranks), receive_counts(ranks);
    for (const uint32_t key : keys[label]) ++send_counts[ranges.Rank(key)];
    ELASTOR_RETURN_IF_ERROR(communicator.AllToAll(Phase::kMetrics, send_counts.data(),
                                                  receive_counts.data(), sizeof(int64_t)));
    // Sorted by key is sorted by rank, too.
    std::vector<uint32_t> sorted = keys[label];
    std::sort(sorted.begin(), sorted.end());
    int64_t received = 0;
    for (int r = 0; r < ranks; ++r) {
      received += receive_counts[r];
      send_counts[r] *= sizeof(uint32_t);
      receive_counts[r] *= sizeof(uint32_t);
    }
    owned->keys[label].resize(received);
    ELASTOR_RETURN_IF_ERROR(communicator.AllToAllV(Phase::kMetrics, sorted.data(), send_counts,
                                                   owned->keys[label].data(), receive_counts));
    std::sort(owned->keys[label].begin(), owned->keys[label].end());
  }
  return OkStatus();
}

// Sum over this rank's distinct scores of pos * (2 * neg_below + neg_equal).
unsigned __int128 PairsWon(const OwnedKeys& owned, int64_t negatives_below) {
  const std::vector<uint32_t>& negatives = owned.keys[kNegative];
  const std::vector<uint32_t>& positives = owned.keys[kPositive];
  unsigned __int128 won = 0;
  auto negative = negatives.begin();
  for (auto positive = positives.begin(); positive != positives.end();) {
    const uint32_t score = *positive;
    const auto next = std::upper_bound(positive, positives.end(), score);
    while (negative != negatives.end() && *negative < score) ++negative;
    auto above = negative;
    while (above != negatives.end() && *above == score) ++above;
    const int64_t below = negatives_below + (negative - negatives.begin());
    won += static_cast<unsigned __int128>(next - positive) * (2 * below + (above - negative));
    positive = next;
    negative = above;
  }
  return won;
}

// Sum over ranks of 128-bit numbers, in words of 32 bits that leave room for the carries.
StatusOr<unsigned __int128> SumOverRanks(unsigned __int128 value, Communicator& communicator) {
  std::array<int64_t, 4> words;
  for (int i = 0; i < 4; ++i) words[i] = static_cast<uint32_t>(value >> (32 * i));
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, words));
  unsigned __int128 sum = 0;
  for (int i = 3; i >= 0; --i) sum = (sum << 32) + static_cast<uint64_t>(words[i]);
  return sum;
}

}  // namespace

void BinaryMetrics::Add(std::span<const float> logits, std::span<const float> labels,
                        std::span<const double> losses) {
  CHECK_EQ(logits.size(), labels.size());
  CHECK_EQ(logits.size(), losses.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    CHECK(labels[i] == 0 || labels[i] == 1) << "label " << labels[i];
    losses_.Add(losses[i]);
    if (std::isnan(logits[i])) {
      nan_logit_ = true;
      continue;
    }
    keys_[labels[i] == 1 ? kPositive : kNegative].push_back(OrderedKey(logits[i]));
    predictions_.Add(1 / (1 + CanonicalExp(-double{logits[i]})));
  }
}

StatusOr<MetricValues> BinaryMetrics::Reduce(Communicator& communicator) const {
  // One exchange for everything that is a plain sum.
  std::vector<int64_t> words;
  for (const ExactSum* sum : {&losses_, &predictions_}) {
    const auto part = sum->ToWords();
    words.insert(words.end(), part.begin(), part.end());
  }
  for (const auto& keys : keys_) words.push_back(static_cast<int64_t>(keys.size()));
  words.push_back(nan_logit_);
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, words));
  const auto total_of = [&](int index) {
    std::array<int64_t, ExactSum::kWords> part;
    std::copy_n(words.begin() + index * ExactSum::kWords, ExactSum::kWords, part.begin());
    return ExactSum::FromWords(part);
  };
  const ExactSum losses = total_of(0);
  const ExactSum predictions = total_of(1);
  const int64_t negatives = words[2 * ExactSum::kWords];
  const int64_t positives = words[2 * ExactSum::kWords + 1];
  const int64_t nan_ranks = words[2 * ExactSum::kWords + 2];
  if (nan_ranks > 0) return DivergedError("evaluation: a logit is not a number");
  if (!losses.ok()) return DivergedError("evaluation: a row's loss is not finite");

  MetricValues values;
  values.rows = negatives + positives;
  values.positives = positives;
  if (values.rows == 0) return UserError("evaluation: the split has no rows");
  const auto rows = static_cast<double>(values.rows);
  values.logloss = losses.Value() / rows;
  if (positives > 0) values.calibration = predictions.Value() / static_cast<double>(positives);
  if (positives == 0 || negatives == 0) {
    LOG_IF(WARNING, communicator.rank() == 0)
        << "all " << values.rows << " labels are " << (positives == 0 ? 0 : 1) << ": no AUC";
    return values;
  }
  const double rate = static_cast<double>(positives) / rows;
  const double other = static_cast<double>(negatives) / rows;
  values.normalized_entropy =
      values.logloss / -(rate * CanonicalLog(rate) + other * CanonicalLog(other));
  ELASTOR_ASSIGN_OR_RETURN(values.auc, ReduceAuc(communicator, positives, negatives));
  return values;
}

StatusOr<double> BinaryMetrics::ReduceAuc(Communicator& communicator, int64_t positives,
                                          int64_t negatives) const {
  // -smallest and largest, so that one maximum gives both.
  std::array<int64_t, 2> bounds = {-int64_t{std::numeric_limits<uint32_t>::max()}, 0};
  for (const auto& keys : keys_) {
    for (const uint32_t key : keys) {
      bounds[0] = std::max(bounds[0], -int64_t{key});
      bounds[1] = std::max(bounds[1], int64_t{key});
    }
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceMax(Phase::kMetrics, bounds));

  ScoreRanges ranges(static_cast<uint32_t>(-bounds[0]), static_cast<uint32_t>(bounds[1]));
  std::vector<int64_t> histogram = ranges.MakeHistogram();
  for (const auto& keys : keys_) {
    for (const uint32_t key : keys) ++histogram[ranges.Bucket(key)];
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, histogram));
  ranges.Cut(histogram, communicator.size());

  OwnedKeys owned;
  ELASTOR_RETURN_IF_ERROR(ExchangeKeys(keys_, ranges, communicator, &owned));

  // Negatives in the ranges below this rank's.
  std::vector<int64_t> negatives_of(communicator.size());
  const auto mine = static_cast<int64_t>(owned.keys[kNegative].size());
  const std::vector<int64_t> bytes(communicator.size(), sizeof(int64_t));
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllGatherV(Phase::kMetrics, &mine, negatives_of.data(), bytes));
  int64_t below = 0;
  for (int r = 0; r < communicator.rank(); ++r) below += negatives_of[r];

  ELASTOR_ASSIGN_OR_RETURN(const unsigned __int128 won,
                           SumOverRanks(PairsWon(owned, below), communicator));
  const auto pairs = static_cast<unsigned __int128>(positives) * negatives;
  return static_cast<double>(won) / static_cast<double>(2 * pairs);
}

}  // namespace elastor
