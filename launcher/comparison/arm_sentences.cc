#include "launcher/comparison/arm_sentences.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/text.h"

namespace elastor {
namespace {

constexpr size_t kMostNamed = 4;      // arms of a sentence; others are counted
constexpr size_t kMostCrossings = 3;  // pairs that are told to cross

// "a", "a and b", "a, b and c".
std::string Listed(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text;
}

// The first few of a list, and how many more there are.
std::string Shortened(std::vector<std::string> parts) {
  if (parts.size() > kMostNamed) {
    const size_t more = parts.size() - kMostNamed + 1;
    parts.resize(kMostNamed - 1);
    parts.push_back(StrCat(more, " more"));
  }
  return Listed(parts);
}

std::string SignedText(double value) {
  return (value < 0 ? "\u2212" : "") + Format("%.4f", std::abs(value));
}

std::string SeedsText(const ArmDifference& difference) {
  return " over " + CountText(difference.seeds, "seed");
}

// Levels of a pair where the first, the second or neither is ahead.
struct Levels {
  std::vector<std::string> first, second;
  size_t open = 0;
};

Levels LevelsOf(const ToldMetric& metric, size_t first, size_t second) {
  Levels levels;
  for (const ArmDifference& at : metric.comparison.by_level) {
    const bool same = at.first == first && at.second == second;
    if (!same && !(at.first == second && at.second == first)) continue;
    if (!at.told_apart()) {
      ++levels.open;
      continue;
    }
    const double gain = (same ? 1 : -1) * (metric.larger_is_better ? at.value : -at.value);
    (gain > 0 ? levels.first : levels.second).push_back(at.level);
  }
  return levels;
}

// Where one is ahead at some levels and the other at others, a mean over levels misleads.
std::string Crossing(const ToldMetric& metric, size_t first, size_t second) {
  const Levels levels = LevelsOf(metric, first, second);
  if (levels.first.empty() || levels.second.empty()) return "";
  std::string text = metric.arms[first] + " and " + metric.arms[second] + " cross in " +
                     metric.name + ": " + metric.arms[first] + " is ahead at " +
                     Shortened(levels.first) + ", " + metric.arms[second] + " at " +
                     Shortened(levels.second);
  if (levels.open > 0) text += StrCat("; ", levels.open, " more cannot be told");
  return text + ".";
}

// " on average over the 5 sizes that both have, and at each of them".
std::string OverLevels(const ToldMetric& metric, size_t best, size_t other) {
  const Levels levels = LevelsOf(metric, best, other);
  const size_t all = levels.first.size() + levels.second.size() + levels.open;
  if (all == 0) return "";
  std::string text = StrCat(", on average over the ", all, " settings that both have");
  if (levels.first.size() == all) text += " and at each of them";
  if (levels.first.empty()) text += " but at none by itself";
  return text;
}

std::string OfTwo(const ToldMetric& metric, size_t best, size_t other, const ArmDifference& gain) {
  const std::string& winner = metric.arms[best];
  const std::string& loser = metric.arms[other];
  if (gain.told_apart()) {
    return winner + " is ahead of " + loser + " by " + SignedText(gain.value) + " " + metric.name +
           Format(" [%.4f, %.4f]", gain.interval->low, gain.interval->high) + SeedsText(gain) +
           OverLevels(metric, best, other) + ".";
  }
  if (!gain.interval) {
    return winner + " has the better " + metric.name + ", by " + SignedText(gain.value) + " over " +
           loser + ", but with one seed nothing tells this from the luck of a seed.";
  }
  return winner + " and " + loser + " cannot be told apart by " + metric.name + ": " + winner +
         " is better by " + GainText(gain) + SeedsText(gain) + ".";
}

// Names of the arms that the best one is ahead of.
std::set<std::string> Behind(const ToldMetric& metric) {
  std::set<std::string> behind;
  const size_t best = BestArm(metric);
  for (size_t i = 0; i < metric.arms.size(); ++i) {
    const auto gain = GainOver(metric, metric.comparison.overall, best, i);
    if (gain && gain->told_apart()) behind.insert(metric.arms[i]);
  }
  return behind;
}

bool AnyCrosses(const ToldMetric& metric) {
  for (size_t i = 0; i < metric.arms.size(); ++i) {
    for (size_t j = i + 1; j < metric.arms.size(); ++j) {
      if (!Crossing(metric, i, j).empty()) return true;
    }
  }
  return false;
}

}  // namespace

size_t BestArm(const ToldMetric& metric) {
  size_t best = 0;
  for (size_t i = 1; i < metric.means.size(); ++i) {
    const bool better = metric.larger_is_better ? metric.means[i] > metric.means[best]
                                                : metric.means[i] < metric.means[best];
    if (better) best = i;
  }
  return best;
}

std::optional<ArmDifference> GainOver(const ToldMetric& metric,
                                      const std::vector<ArmDifference>& differences, size_t best,
                                      size_t other) {
  for (ArmDifference gain : differences) {
    const bool same = gain.first == best && gain.second == other;
    if (!same && !(gain.first == other && gain.second == best)) continue;
    gain.first = best;
    gain.second = other;
    if (same == metric.larger_is_better) return gain;
    gain.value = -gain.value;
    if (gain.interval) gain.interval = Interval{-gain.interval->high, -gain.interval->low};
    return gain;
  }
  return std::nullopt;
}

std::string GainText(const ArmDifference& gain) {
  std::string text = SignedText(gain.value);
  if (!gain.interval) return text;
  return text + " [" + SignedText(gain.interval->low) + ", " + SignedText(gain.interval->high) +
         "]";
}

std::string WhoIsAheadToo(const ToldMetric& first, const ToldMetric& second) {
  if (first.arms != second.arms || first.arms.size() < 2) return WhoIsAhead(second);
  if (AnyCrosses(first) || AnyCrosses(second)) return WhoIsAhead(second);
  const std::set<std::string> behind = Behind(first);
  if (behind != Behind(second)) return WhoIsAhead(second);
  if (behind.empty()) return "By " + second.name + " nobody can be told from the best either.";
  if (BestArm(first) != BestArm(second)) return WhoIsAhead(second);
  return "It is the same by " + second.name + ".";
}

std::string WhoIsAhead(const ToldMetric& metric) {
  if (metric.arms.size() < 2) return "";
  const size_t best = BestArm(metric);
  std::vector<std::pair<std::string, ArmDifference>> gains;  // the nearest arm first
  std::string crossings;
  size_t crossed = 0;
  for (size_t i = 0; i < metric.arms.size(); ++i) {
    for (size_t j = i + 1; j < metric.arms.size() && crossed < kMostCrossings; ++j) {
      const std::string crossing = Crossing(metric, i, j);
      if (crossing.empty()) continue;
      crossings += (crossings.empty() ? "" : " ") + crossing;
      ++crossed;
    }
    if (i == best) continue;
    const auto gain = GainOver(metric, metric.comparison.overall, best, i);
    if (gain) gains.emplace_back(metric.arms[i], *gain);
  }
  if (gains.empty()) return "";
  if (metric.arms.size() == 2) {
    return crossings.empty() ? OfTwo(metric, best, 1 - best, gains[0].second) : crossings;
  }
  std::ranges::stable_sort(gains, {}, [](const auto& each) { return each.second.value; });
  std::vector<std::string> behind, open;
  for (const auto& [name, gain] : gains) {
    if (gain.told_apart()) {
      behind.push_back(name + " by " + GainText(gain));
    } else {
      open.push_back(name);
    }
  }
  const ArmDifference& nearest = gains.front().second;
  const std::string& winner = metric.arms[best];
  const std::string has =
      winner + " has the best " + metric.name + ", " + Format("%.4f", metric.means[best]);
  std::string text;
  if (std::ranges::none_of(gains, [](const auto& each) { return each.second.p.has_value(); })) {
    text = has + ", but with one seed nothing tells the " + StrCat(gains.size() + 1) +
           " apart from the luck of a seed.";
  } else if (behind.empty() && gains.size() == 1) {
    text = has + SeedsText(nearest) + ", but " + gains.front().first +
           " cannot be told from it; it is behind by " + GainText(nearest) + ".";
  } else if (behind.empty()) {
    text = has + SeedsText(nearest) + ", but none of the " + StrCat(gains.size()) +
           " others can be told from it; the next, " + gains.front().first + ", is behind by " +
           GainText(nearest) + ".";
  } else if (open.empty() && gains.size() + 1 == metric.arms.size()) {
    text = winner + " is ahead of all others in " + metric.name + SeedsText(nearest) + ": of " +
           Shortened(behind) + ".";
  } else {
    text = has + SeedsText(nearest) + ": it is ahead of " + Shortened(behind) +
           (open.empty() ? "." : "; " + Shortened(open) + " cannot be told from it.");
  }
  return crossings.empty() ? text : text + " " + crossings;
}

}  // namespace elastor
