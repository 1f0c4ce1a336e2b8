#include "launcher/comparison/energy_distance.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/base/log.h"
#include "core/base/random.h"

namespace elastor {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Distances are sums of the same terms in another order for equal labellings.
constexpr double kRounding = 1e-9;

// Mean distances between the points of any two runs; the first arm's runs come first.
class RunDistances {
 public:
  RunDistances(std::span<const LossAndGapRun> first, std::span<const LossAndGapRun> second)
      : runs_(static_cast<int64_t>(first.size() + second.size())), distances_(runs_ * runs_) {
    CHECK(!first.empty() && !second.empty());
    std::vector<LossAndGapRun> all(first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    Standardise(&LossAndGap::loss, &all);
    Standardise(&LossAndGap::gap, &all);
    for (int64_t i = 0; i < runs_; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        distances_[i * runs_ + j] = distances_[j * runs_ + i] = MeanDistance(all[i], all[j]);
      }
    }
  }

  // Returns the energy distance between the arm of the marked runs and the arm of the others.
  double Energy(const std::vector<int32_t>& in_first) const {
    double within[2] = {0, 0}, between = 0;
    int64_t count[2] = {0, 0};
    for (int64_t i = 0; i < runs_; ++i) {
      const double* row = &distances_[i * runs_];
      double sums[2] = {0, 0};
      for (int64_t j = 0; j < runs_; ++j) sums[in_first[j]] += row[j];
      ++count[in_first[i]];
      within[in_first[i]] += sums[in_first[i]];
      if (in_first[i]) between += sums[0];
    }
    const auto a = static_cast<double>(count[1]), b = static_cast<double>(count[0]);
    return 2 * between / (a * b) - within[1] / (a * a) - within[0] / (b * b);
  }

 private:
  static void Standardise(double LossAndGap::*value, std::vector<LossAndGapRun>* runs) {
    double count = 0, sum = 0, squares = 0;
    for (const LossAndGapRun& run : *runs) {
      CHECK(!run.empty());
      for (const LossAndGap& point : run) {
        CHECK(std::isfinite(point.*value));
        sum += point.*value;
        ++count;
      }
    }
    const double mean = sum / count;
    for (LossAndGapRun& run : *runs) {
      for (LossAndGap& point : run) squares += (point.*value - mean) * (point.*value - mean);
    }
    const double deviation = std::sqrt(squares / count);
    // Equal values may differ from their rounded mean.
    const double scale = deviation > kRounding * std::abs(mean) ? 1 / deviation : 0;
    for (LossAndGapRun& run : *runs) {
      for (LossAndGap& point : run) point.*value = (point.*value - mean) * scale;
    }
  }

  static double MeanDistance(const LossAndGapRun& a, const LossAndGapRun& b) {
    double sum = 0;
    for (const LossAndGap& x : a) {
      for (const LossAndGap& y : b) {
        const double loss = x.loss - y.loss, gap = x.gap - y.gap;
        sum += std::sqrt(loss * loss + gap * gap);  // std::hypot's last bit depends on glibc
      }
    }
    return sum / (static_cast<double>(a.size()) * static_cast<double>(b.size()));
  }

  int64_t runs_;
  std::vector<double> distances_;
};

// The labellings to try, the runs' own first; the same for every shift.
class Labellings {
 public:
  Labellings(int64_t first, int64_t runs, const EnergyTestOptions& options) {
    std::vector<int32_t> labels(runs, 0);
    std::fill_n(labels.begin(), first, 1);
    exact_ = Count(first, runs) <= static_cast<double>(options.most_exact);
    if (exact_) {
      do {
        labels_.push_back(labels);
      } while (std::ranges::prev_permutation(labels).found);
      return;
    }
    labels_.push_back(labels);
    for (int64_t draw = 0; draw < options.draws; ++draw) {
      // Fisher and Yates's shuffle.
      PhiloxBlock block = {};
      for (int64_t i = runs - 1; i > 0; --i) {
        const auto word = static_cast<uint32_t>(runs - 1 - i);
        if (word % 4 == 0) {
          block = Philox(options.seed, {word / 4, static_cast<uint32_t>(draw), 0, 0});
        }
        std::swap(labels[i], labels[uint64_t{block[word % 4]} * (i + 1) >> 32]);
      }
      labels_.push_back(labels);
    }
  }

  bool exact() const { return exact_; }
  const std::vector<std::vector<int32_t>>& labels() const { return labels_; }

  // The share of labellings whose statistic is no smaller than the runs' own.
  template <typename Statistic>
  double PValue(const Statistic& statistic) const {
    const double own = statistic(labels_[0]);
    const double least = own - kRounding * std::max(own, 1.0);
    const int64_t count = std::ranges::count_if(
        labels_, [&](const std::vector<int32_t>& labels) { return statistic(labels) >= least; });
    return static_cast<double>(count) / static_cast<double>(labels_.size());
  }
  double PValue(const RunDistances& distances) const {
    return PValue([&](const std::vector<int32_t>& labels) { return distances.Energy(labels); });
  }

 private:
  // Ways to choose `first` of `runs`.
  static double Count(int64_t first, int64_t runs) {
    double count = 1;
    for (int64_t i = 1; i <= first; ++i) {
      count *= static_cast<double>(runs - first + i) / static_cast<double>(i);
    }
    return std::round(count);
  }

  bool exact_ = false;
  std::vector<std::vector<int32_t>> labels_;
};

Labellings LabellingsOf(std::span<const LossAndGapRun> first, std::span<const LossAndGapRun> second,
                        const EnergyTestOptions& options) {
  return {static_cast<int64_t>(first.size()), static_cast<int64_t>(first.size() + second.size()),
          options};
}

// A gap of every run, in units of the largest; the first arm's runs come first.
class RunGaps {
 public:
  explicit RunGaps(std::vector<double> gaps) : gaps_(std::move(gaps)) {
    for (const double gap : gaps_) unit_ = std::max(unit_, std::abs(gap));
    if (unit_ == 0) unit_ = 1;
    for (double& gap : gaps_) gap /= unit_;
  }

  double unit() const { return unit_; }
  // Returns the unmarked runs' mean less the marked runs' mean.
  double Difference(const std::vector<int32_t>& in_first) const {
    return Difference(in_first, in_first, 0);
  }
  // The same by other labels, when `shift` is taken out of the second arm first.
  double Difference(const std::vector<int32_t>& labels, const std::vector<int32_t>& in_first,
                    double shift) const {
    double sums[2] = {0, 0}, counts[2] = {0, 0};
    for (size_t i = 0; i < gaps_.size(); ++i) {
      sums[labels[i]] += gaps_[i] - (in_first[i] ? 0 : shift);
      ++counts[labels[i]];
    }
    return sums[0] / counts[0] - sums[1] / counts[1];
  }

 private:
  std::vector<double> gaps_;
  double unit_ = 0;
};

GapDifference TestGaps(std::vector<double> gaps_of_runs, const Labellings& labellings,
                       double level) {
  const std::vector<int32_t>& own = labellings.labels()[0];
  const RunGaps gaps(std::move(gaps_of_runs));
  const double difference = gaps.Difference(own);
  const auto rejects = [&](double shift) {
    return labellings.PValue([&](const std::vector<int32_t>& labels) {
      return std::abs(gaps.Difference(labels, own, shift));
    }) <= level;
  };
  // The difference itself is never rejected; away from it every shift is, from some size on.
  const auto end = [&](double direction) {
    constexpr double kFarthest = 1e6;
    constexpr int kHalvings = 30;
    double inside = 0, outside = 1;
    while (!rejects(difference + direction * outside)) {
      inside = outside;
      outside *= 2;
      if (outside > kFarthest) return direction * kInfinity;
    }
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (inside + outside) / 2;
      (rejects(difference + direction * middle) ? outside : inside) = middle;
    }
    return (difference + direction * inside) * gaps.unit();
  };
  return {difference * gaps.unit(), {end(-1), end(1)}};
}

double MeanGap(const LossAndGapRun& run) {
  double sum = 0;
  for (const LossAndGap& point : run) sum += point.gap;
  return sum / static_cast<double>(run.size());
}

}  // namespace

double EnergyDistance(std::span<const LossAndGapRun> first, std::span<const LossAndGapRun> second) {
  std::vector<int32_t> in_first(first.size() + second.size(), 0);
  std::fill_n(in_first.begin(), first.size(), 1);
  return RunDistances(first, second).Energy(in_first);
}

double PermutationPValue(std::span<const LossAndGapRun> first,
                         std::span<const LossAndGapRun> second, const EnergyTestOptions& options) {
  return LabellingsOf(first, second, options).PValue(RunDistances(first, second));
}

std::optional<double> GapAtLoss(const LossAndGapRun& run, double loss) {
  const auto after =
      std::ranges::find_if(run, [&](const LossAndGap& point) { return point.loss <= loss; });
  if (after == run.end()) return std::nullopt;
  if (after->loss == loss) return after->gap;
  if (after == run.begin()) return std::nullopt;
  const LossAndGap& before = *std::prev(after);
  const double part = (before.loss - loss) / (before.loss - after->loss);
  return before.gap + part * (after->gap - before.gap);
}

EnergyTest TestEnergyDistance(std::span<const LossAndGapRun> first,
                              std::span<const LossAndGapRun> second,
                              const EnergyTestOptions& options) {
  const Labellings labellings = LabellingsOf(first, second, options);
  EnergyTest test;
  test.distance = EnergyDistance(first, second);
  test.p = labellings.PValue(RunDistances(first, second));
  test.exact = labellings.exact();
  test.labellings = static_cast<int64_t>(labellings.labels().size());

  std::vector<LossAndGapRun> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  double loss = -kInfinity;  // the largest of the runs' smallest losses
  std::vector<double> means, last, at_loss;
  for (const LossAndGapRun& run : all) {
    means.push_back(MeanGap(run));
    last.push_back(run.back().gap);
    loss = std::max(loss, std::ranges::min(run, {}, &LossAndGap::loss).loss);
  }
  for (const LossAndGapRun& run : all) {
    const std::optional<double> gap = GapAtLoss(run, loss);
    if (gap) at_loss.push_back(*gap);
  }
  test.mean = TestGaps(std::move(means), labellings, options.level);
  test.last = TestGaps(std::move(last), labellings, options.level);
  if (at_loss.size() == all.size()) {
    test.equal_loss = {loss, TestGaps(std::move(at_loss), labellings, options.level)};
  }
  return test;
}

}  // namespace elastor
