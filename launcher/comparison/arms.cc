#include "launcher/comparison/arms.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "launcher/comparison/row_statistics.h"
#include "launcher/comparison/significance.h"

namespace elastor {
namespace {

// A difference with its variance, before they become an interval.
struct Estimate {
  double value = 0, variance = 0;
  double freedom = 0;  // of the variance; 0: nothing is known
};

void AddInterval(const Estimate& estimate, ArmDifference* difference) {
  difference->value = estimate.value;
  if (!(estimate.freedom >= 1 - 1e-9)) return;
  const double error = std::sqrt(estimate.variance);
  const double half = StudentQuantile(estimate.freedom) * error;
  difference->interval = {estimate.value - half, estimate.value + half};
  difference->p = error > 0             ? StudentP(estimate.value / error, estimate.freedom)
                  : estimate.value == 0 ? 1.0
                                        : 0.0;
}

std::vector<double> ValuesOf(const ArmLevel& level) {
  std::vector<double> values;
  for (const auto& [seed, value] : level.by_seed) values.push_back(value);
  return values;
}

double SumOfSquares(std::span<const double> values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

// Two arms at a level that both have.
struct SharedLevel {
  std::string name;
  std::vector<double> pairs;  // differences of runs with the same seed
  std::vector<double> first, second;
};

std::vector<SharedLevel> SharedLevels(const Arm& first, const Arm& second) {
  std::vector<SharedLevel> shared;
  for (const ArmLevel& level : first.levels) {
    const auto other = std::ranges::find(second.levels, level.name, &ArmLevel::name);
    if (other == second.levels.end() || level.by_seed.empty() || other->by_seed.empty()) continue;
    SharedLevel& both = shared.emplace_back();
    both.name = level.name;
    both.first = ValuesOf(level);
    both.second = ValuesOf(*other);
    for (const auto& [seed, value] : level.by_seed) {
      const auto same = other->by_seed.find(seed);
      if (same != other->by_seed.end()) both.pairs.push_back(value - same->second);
    }
  }
  return shared;
}

// Student's, over pairs: one spread of the pairs of all levels.
std::vector<Estimate> PairedEstimates(const std::vector<SharedLevel>& levels) {
  double squares = 0, freedom = 0;
  for (const SharedLevel& level : levels) {
    squares += SumOfSquares(level.pairs);
    freedom += static_cast<double>(level.pairs.size()) - 1;
  }
  std::vector<Estimate> estimates;
  for (const SharedLevel& level : levels) {
    estimates.push_back(
        {Mean(level.pairs), squares / freedom / static_cast<double>(level.pairs.size()), freedom});
  }
  return estimates;
}

// Welch's, of each level by itself.
std::vector<Estimate> UnpairedEstimates(const std::vector<SharedLevel>& levels) {
  std::vector<Estimate> estimates;
  for (const SharedLevel& level : levels) {
    Estimate& estimate = estimates.emplace_back();
    estimate.value = Mean(level.first) - Mean(level.second);
    if (level.first.size() < 2 || level.second.size() < 2) continue;
    double share = 0;
    for (const std::vector<double>& values : {level.first, level.second}) {
      const double of_mean = VarianceOfMean(values);
      estimate.variance += of_mean;
      share += of_mean * of_mean / (static_cast<double>(values.size()) - 1);
    }
    estimate.freedom = share > 0 ? estimate.variance * estimate.variance / share : HUGE_VAL;
  }
  return estimates;
}

Estimate MeanOf(const std::vector<Estimate>& estimates, bool pooled) {
  const auto count = static_cast<double>(estimates.size());
  Estimate mean;
  double share = 0;
  bool known = true;
  for (const Estimate& each : estimates) {
    const double variance = each.variance / (count * count);
    mean.value += each.value / count;
    mean.variance += variance;
    known = known && each.freedom > 0;
    if (each.freedom > 0) share += variance * variance / each.freedom;
  }
  if (!known) return {.value = mean.value};
  mean.freedom = pooled      ? estimates.front().freedom
                 : share > 0 ? mean.variance * mean.variance / share
                             : HUGE_VAL;
  return mean;
}

void Correct(std::vector<ArmDifference>* differences) {
  std::vector<double> p_values;
  for (const ArmDifference& each : *differences) {
    if (each.p) p_values.push_back(*each.p);
  }
  const std::vector<double> adjusted = HolmAdjusted(p_values);
  size_t next = 0;
  for (ArmDifference& each : *differences) {
    if (each.p) each.holm = adjusted[next++];
  }
}

}  // namespace

ArmComparison CompareArms(const std::vector<Arm>& arms) {
  ArmComparison comparison;
  for (size_t i = 0; i < arms.size(); ++i) {
    for (size_t j = i + 1; j < arms.size(); ++j) {
      const std::vector<SharedLevel> levels = SharedLevels(arms[i], arms[j]);
      if (levels.empty()) continue;
      const bool paired =
          std::ranges::all_of(levels, [](const auto& level) { return !level.pairs.empty(); }) &&
          std::ranges::any_of(levels, [](const auto& level) { return level.pairs.size() > 1; });
      const std::vector<Estimate> estimates =
          paired ? PairedEstimates(levels) : UnpairedEstimates(levels);
      ArmDifference whole = {.first = i, .second = j, .level = {}, .paired = paired};
      for (size_t l = 0; l < levels.size(); ++l) {
        const SharedLevel& level = levels[l];
        ArmDifference at = whole;
        at.level = level.name;
        at.seeds = static_cast<int64_t>(paired ? level.pairs.size()
                                               : std::min(level.first.size(), level.second.size()));
        AddInterval(estimates[l], &at);
        whole.seeds = l == 0 ? at.seeds : std::min(whole.seeds, at.seeds);
        if (levels.size() > 1) comparison.by_level.push_back(std::move(at));
      }
      AddInterval(MeanOf(estimates, paired), &whole);
      comparison.overall.push_back(std::move(whole));
    }
  }
  Correct(&comparison.overall);
  Correct(&comparison.by_level);
  return comparison;
}

SizeTrend TrendOf(const std::vector<std::vector<double>>& groups) {
  SizeTrend trend;
  std::vector<double> means;
  double within = 0, runs = 0, sum = 0;
  for (const std::vector<double>& group : groups) {
    means.push_back(Mean(group));
    within += SumOfSquares(group);
    runs += static_cast<double>(group.size());
    sum += means.back() * static_cast<double>(group.size());
  }
  trend.best = std::ranges::max_element(means) - means.begin();
  const double freedom = runs - static_cast<double>(groups.size());
  if (freedom < 1) return trend;
  double between = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const double off = means[g] - sum / runs;
    between += static_cast<double>(groups[g].size()) * off * off;
  }
  const double of_groups = static_cast<double>(groups.size()) - 1;
  trend.p = within > 0    ? FisherP(between / of_groups / (within / freedom), of_groups, freedom)
            : between > 0 ? 0.0
                          : 1.0;
  const auto less = [&](size_t other) {
    const size_t last = groups.size() - 1;
    const double variance = within / freedom *
                            (1 / static_cast<double>(groups[last].size()) +
                             1 / static_cast<double>(groups[other].size()));
    ArmDifference difference;
    AddInterval({means[last] - means[other], variance, freedom}, &difference);
    return difference;
  };
  const ArmDifference last_step = less(groups.size() - 2);
  trend.last_step = last_step.interval;
  trend.p_of_last_step = last_step.p;
  if (trend.best + 1 < groups.size()) {
    trend.p_of_best = std::min(1.0, of_groups * *less(trend.best).p);
  }
  return trend;
}

}  // namespace elastor
