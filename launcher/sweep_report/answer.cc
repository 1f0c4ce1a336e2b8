#include "launcher/sweep_report/answer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/report/axis.h"

namespace elastor {
namespace {

// More pairs of models are in the table alone.
constexpr size_t kMostPairs = 3;
constexpr double kLevel = 0.05;

const SweepLaw* Find(const std::vector<SweepLaw>& laws, Metric metric, const std::string& size) {
  for (const SweepLaw& law : laws) {
    if (law.metric == metric && law.sizes == std::vector<std::string>{size}) return &law;
  }
  return nullptr;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text;
}

std::string Signed(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, std::abs(value));
  return (value < 0 ? "\u2212" : "+") + std::string(text);
}

std::string Size(double value) { return PrefixedNumber(value, 3); }

// Names of sizes as people write them.
std::string Plain(std::string text) {
  std::ranges::replace(text, '_', ' ');
  return text;
}

// Who is ahead, of two, at the sizes that both have.
struct Verdict {
  std::string ahead;  // at all of them; empty: nobody is
  bool open = false;  // nobody is at any of them
  std::string lead;   // "0.0035 [0.0033, 0.0037] at 837k", at the middle
};

Verdict VerdictOf(const ModelComparison& comparison) {
  int first = 0, second = 0;
  // The last prediction lies beyond the data.
  const int sizes = static_cast<int>(comparison.predictions.size()) - 1;
  for (int i = 0; i < sizes; ++i) {
    const ComparedPrediction& at = comparison.predictions[i];
    first += at.difference.high < 0;
    second += at.difference.low > 0;
  }
  const ComparedPrediction& middle = comparison.predictions[sizes / 2];
  double low = std::abs(middle.difference.low), high = std::abs(middle.difference.high);
  if (low > high) std::swap(low, high);
  return {first == sizes    ? comparison.first
          : second == sizes ? comparison.second
                            : "",
          first + second == 0,
          Format("%.4f [%.4f, %.4f] at ", std::abs(middle.first - middle.second), low, high) +
              Size(middle.size)};
}

// At equal sizes of one kind, in both metrics.
std::string Compared(const ModelComparison& logloss, const ModelComparison* auc) {
  const std::string where = std::string("at equal ") + SizeTitle(logloss.size_name);
  const std::string both = logloss.first + " and " + logloss.second;
  if (logloss.predictions.empty()) {
    return both + " cannot be compared " + where + ": " + logloss.why_not + ".";
  }
  const std::string range = " (" + Size(logloss.predictions.front().size) + " to " +
                            Size(logloss.predictions[logloss.predictions.size() - 2].size) + ")";
  const Verdict by_logloss = VerdictOf(logloss);
  if (auc == nullptr || auc->predictions.empty()) auc = &logloss;
  const Verdict by_auc = VerdictOf(*auc);
  if (by_logloss.open && by_auc.open) {
    return both + " cannot be told apart " + where + range + ", by logloss or AUC.";
  }
  if (!by_logloss.ahead.empty() && by_logloss.ahead == by_auc.ahead) {
    return by_logloss.ahead + " is ahead " + where + range + ": its logloss is lower by " +
           by_logloss.lead + ", its AUC higher by " + by_auc.lead + ".";
  }
  const auto part = [&](const ModelComparison& comparison, const Verdict& verdict,
                        const char* name) {
    if (!verdict.ahead.empty()) {
      return verdict.ahead + " has the better " + name + ", by " + verdict.lead;
    }
    if (verdict.open) return std::string("the two cannot be told apart by ") + name;
    std::map<std::string, std::vector<std::string>> ahead;
    std::vector<std::string> open, parts;
    for (size_t i = 0; i + 1 < comparison.predictions.size(); ++i) {
      const ComparedPrediction& at = comparison.predictions[i];
      (at.told_apart() ? ahead[at.difference.low > 0 ? comparison.second : comparison.first] : open)
          .push_back(Size(at.size));
    }
    for (const auto& [who, sizes] : ahead) {
      parts.push_back(who + " has the better " + name + " at " + Joined(sizes));
    }
    return Joined(parts) +
           (open.empty() ? "" : ", with no difference to be told at " + Joined(open));
  };
  return "A" + where.substr(1) + range + " " + part(logloss, by_logloss, "logloss") + "; " +
         part(*auc, by_auc, "AUC") + ".";
}

// "logloss 0.4784 at 61.7k, 0.4903 at 6.56M dense parameters".
std::string MeasuredText(const SweepLaw& law, const SeriesLaw& series) {
  const auto mean = [&](const Configuration& configuration) {
    double sum = 0;
    for (const double value : configuration.values) sum += value;
    return sum / static_cast<double>(configuration.values.size());
  };
  const auto text = [&](const Configuration& configuration) {
    return Format("%.4f at ", Shown(law.metric, mean(configuration))) +
           Size(configuration.sizes[0]);
  };
  const std::vector<Configuration>& all = series.configurations;
  const Configuration& best = *std::ranges::min_element(all, {}, mean);
  std::string measured = StrCat(ShownName(law.metric), " ", text(all.front()));
  if (all.size() > 1) measured += ", " + text(all.back());
  measured += std::string(" ") + SizeTitle(law.sizes[0]);
  if (&best != &all.back() && &best != &all.front()) measured += ", best " + text(best);
  return measured + ". ";
}

std::string HoldOutText(const SeriesLaw& law, Metric metric, const std::string& size) {
  if (!law.analysis->hold_out) {
    return " No size could be held out, so that nothing shows whether the law predicts.";
  }
  const HoldOut& hold_out = *law.analysis->hold_out;
  std::vector<std::string> sizes, errors, last, line;
  for (const HeldOut& held : hold_out.held_out) {
    sizes.push_back(Size(held.sizes[0]));
    errors.push_back(SignedPercent(held.error));
    last.push_back(SignedPercent(held.last_value_error));
    line.push_back(SignedPercent(held.log_linear_error));
  }
  const Interval& largest = hold_out.held_out.back().interval;
  const double of_law = hold_out.RootMeanSquare(&HeldOut::error);
  const bool better = of_law < hold_out.RootMeanSquare(&HeldOut::last_value_error) &&
                      of_law < hold_out.RootMeanSquare(&HeldOut::log_linear_error);
  return Format(" Hold-out: the law of the %d smallest sizes errs by ", hold_out.fitted) +
         Joined(errors) + " at " + Joined(sizes) + " " + SizeTitle(size) +
         Format(" (noise of a mean of seeds \u00b1%.2f\u00a0%%), ", 100 * NoiseOfMeans(law)) +
         "the last value by " + Joined(last) + ", a log-linear fit by " + Joined(line) + ": the " +
         (sizes.size() == 1 ? "largest size lies " : "largest sizes lie ") +
         (hold_out.breaks_law() ? "outside of what the smaller ones predict"
                                : "inside of what the smaller ones predict") +
         Format(", [%.4f, %.4f]", Shown(metric, largest.low), Shown(metric, largest.high)) +
         " for the largest" + (better ? "." : "; the law predicts no better than a naive rule.");
}

std::string SeriesText(const SweepLaw& law, const SeriesLaw& series) {
  if (series.configurations.empty()) return "no run is done.";
  std::string text = MeasuredText(law, series);
  if (!series.analysis) return text + "No law is fitted: " + Plain(series.why_not) + ".";
  const Analysis& analysis = *series.analysis;
  const Identification& identification = analysis.identification;
  if (identification.identified()) {
    const Interval limit = LimitInterval(analysis), exponent = ExponentInterval(analysis, 0);
    StrAppend(&text, "The law is ", ShownName(law.metric), " = ", LawText(law, analysis),
              Format(", exponent %.3f [%.3f, %.3f], limit %.4f [%.4f, %.4f].",
                     analysis.fit.law.exponents[0], exponent.low, exponent.high,
                     analysis.fit.law.limit, limit.low, limit.high));
  } else {
    std::string reasons;
    for (const std::string& reason : identification.reasons) {
      reasons += (reasons.empty() ? "" : "; ") + Plain(reason);
    }
    text += "The law is not identified, because " + reasons +
            ". Its values near the data can be used, its limit and exponent cannot.";
  }
  return text + HoldOutText(series, law.metric, law.sizes[0]);
}

// The runs of one setting of a series, by its size.
struct SizeGroup {
  double size = 0;
  std::vector<double> aucs, loglosses;  // AUCs: of the runs that have it
};

// By dense parameters; where these are equal, by training samples.
std::vector<SizeGroup> GroupsOf(const SweepArms& arms, const std::string& series,
                                std::string* size_name) {
  std::vector<SizeGroup> groups;
  for (const char* name : {"dense_parameters", "samples"}) {
    *size_name = name;
    std::map<std::pair<double, size_t>, SizeGroup> by_size;
    for (size_t s = 0; s < arms.settings.size(); ++s) {
      if (arms.settings[s].series != series) continue;
      for (const SweepRun* run : arms.settings[s].runs) {
        const auto size = run->sizes.find(name);
        if (size == run->sizes.end()) continue;
        SizeGroup& group = by_size[{size->second, s}];
        group.size = size->second;
        if (const auto logloss = run->Loss(Metric::kLogloss)) group.loglosses.push_back(*logloss);
        if (const auto loss = run->Loss(Metric::kAuc)) group.aucs.push_back(1 - *loss);
      }
    }
    groups.clear();
    for (auto& [size, group] : by_size) {
      if (!group.loglosses.empty()) groups.push_back(std::move(group));
    }
    if (groups.size() > 1 && groups.front().size < groups.back().size) return groups;
  }
  return {};
}

std::string LawSentence(const std::vector<SweepLaw>& laws, const std::string& series,
                        const std::string& size) {
  const SweepLaw* law = Find(laws, Metric::kLogloss, size);
  if (law == nullptr) return "";
  const auto found = std::ranges::find(law->series, series, &SeriesLaw::series);
  if (found == law->series.end() || !found->analysis) return "";
  const Analysis& analysis = *found->analysis;
  if (analysis.hold_out && analysis.hold_out->breaks_law()) {
    return "The law breaks: the largest sizes lie outside what the smaller ones predict.";
  }
  if (!analysis.identification.identified()) return "";
  return "Logloss follows the law " + LawText(*law, analysis) + " in " + SizeTitle(size) + ".";
}

// What size does to one series.
std::string SizeSentence(const SweepArms& arms, const std::vector<SweepLaw>& laws,
                         const std::string& series) {
  std::string size_name;
  const std::vector<SizeGroup> groups = GroupsOf(arms, series, &size_name);
  if (groups.size() < 2) return "";
  const bool by_auc = std::ranges::all_of(
      groups, [](const SizeGroup& group) { return group.aucs.size() == group.loglosses.size(); });
  std::vector<std::vector<double>> values;
  for (const SizeGroup& group : groups) {
    std::vector<double>& gains = values.emplace_back(by_auc ? group.aucs : group.loglosses);
    if (!by_auc) std::ranges::transform(gains, gains.begin(), std::negate<>());
  }
  const auto mean = [&](size_t g) {
    double sum = 0;
    for (const double value : by_auc ? groups[g].aucs : groups[g].loglosses) sum += value;
    return sum / static_cast<double>(values[g].size());
  };
  const SizeTrend trend = TrendOf(values);
  const std::string title = SizeTitle(size_name), metric = by_auc ? "AUC" : "logloss";
  const std::string range =
      "between " + Size(groups.front().size) + " and " + Size(groups.back().size) + " " + title;
  const std::string best =
      Size(groups[trend.best].size) + " (" + metric + " " + Format("%.4f", mean(trend.best)) + ")";
  if (!trend.p) {
    return "One seed of every size: what size does " + range +
           " cannot be told from the luck of a seed; the best was " + best + ".";
  }
  if (*trend.p > kLevel) {
    return "No difference between sizes is shown " + range + ": p " + Format("%.2f", *trend.p) +
           ". No law can be fitted.";
  }
  const std::string law = LawSentence(laws, series, size_name);
  std::string text = law.empty() ? "" : law + " ";
  if (trend.best + 1 == groups.size()) {
    if (*trend.p_of_last_step <= kLevel) {
      return text + "The largest size was best, " + best +
             ", and was still improving: go on to larger ones.";
    }
    return text + "The largest size was best, " + best + ", but is not shown to be better than " +
           Size(groups[groups.size() - 2].size) + ".";
  }
  if (*trend.p_of_best <= kLevel) {
    return text + "The best size was " + best + "; the largest, " + Size(groups.back().size) +
           ", is worse by " +
           Format("%.4f %s", std::abs(mean(trend.best) - mean(groups.size() - 1)), metric.c_str()) +
           ".";
  }
  return text + "The best size was " + best + "; the largest, " + Size(groups.back().size) +
         ", cannot be told from it.";
}

void AddLead(const SweepData& data, const SweepArms& arms, const std::vector<SweepLaw>& laws,
             std::vector<std::string>* lead) {
  const auto add = [lead](std::string text) {
    if (!text.empty()) lead->push_back(std::move(text));
  };
  // Settings of one series that are sizes are told by the trend.
  std::string none;
  const bool sizes = data.series.size() == 1 && GroupsOf(arms, data.series[0], &none).size() > 1;
  for (size_t m = 0; m < arms.metrics.size() && !sizes; ++m) {
    add(m == 0 ? WhoIsAhead(arms.metrics[0]) : WhoIsAheadToo(arms.metrics[0], arms.metrics[m]));
  }
  for (size_t s = 0; s < std::min(data.series.size(), kMostSeries); ++s) {
    const std::string text = SizeSentence(arms, laws, data.series[s]);
    if (!text.empty()) add(data.series.size() > 1 ? data.series[s] + ": " + text : text);
  }
  if (sizes && !arms.metrics.empty() && !arms.axes.empty()) {
    const ToldMetric& metric = arms.metrics[0];
    const size_t best = BestArm(metric);
    add("The best setting was " + metric.arms[best] + ", " + metric.name + " " +
        Format("%.4f", metric.means[best]) + ".");
  }
  const int failed = data.Count(RunState::kFailed);
  if (failed > 0 && !lead->empty()) {
    add(CountText(failed, "run") + " failed and " + (failed == 1 ? "is" : "are") +
        " in none of these figures.");
  }
}

}  // namespace

std::string SignedNumber(double value) { return Signed("%.4f", value); }
std::string SignedPercent(double share) { return Signed("%.2f\u00a0%%", 100 * share); }

double NoiseOfMeans(const SeriesLaw& law) {
  double runs = 0;
  for (const Configuration& each : law.configurations) {
    runs += static_cast<double>(each.values.size());
  }
  const double seeds = runs / static_cast<double>(law.configurations.size());
  return law.analysis->seed_spread.value_or(0) / std::sqrt(seeds);
}

std::string LawText(const SweepLaw& law, const Analysis& analysis) {
  std::string text = Format("%.4g", analysis.fit.law.limit);
  for (size_t k = 0; k < law.sizes.size(); ++k) {
    if (analysis.fit.law.coefficients[k] == 0) continue;
    text += Format(" + %.3g\u00a0", PlainCoefficient(analysis.fit.law, k)) +
            (law.sizes[k] == "dense_parameters" ? "N"
             : law.sizes[k] == "multiply_adds"  ? "M"
             : law.sizes[k] == "samples"        ? "D"
                                                : law.sizes[k]) +
            Format("^\u2212%.3f", analysis.fit.law.exponents[k]);
  }
  return (law.metric == Metric::kAuc ? "1 \u2212 (" + text + ")" : text);
}

Interval LimitInterval(const Analysis& analysis) {
  return analysis.bootstrap.Of([](const Law& law) { return law.limit; });
}

Interval ExponentInterval(const Analysis& analysis, size_t k) {
  return analysis.bootstrap.Of([k](const Law& law) { return law.exponents[k]; });
}

std::string ProgressText(const SweepData& data) {
  const int done = data.Count(RunState::kDone), failed = data.Count(RunState::kFailed);
  const int rest = static_cast<int>(data.runs.size()) - done - failed;
  std::string text = StrCat(done, " of ", data.runs.size(), " runs done");
  if (failed > 0) StrAppend(&text, ", ", failed, " failed");
  if (rest > 0) StrAppend(&text, ", ", rest, " not finished");
  return text;
}

bool HaveSizes(const std::vector<SweepLaw>& laws) {
  return std::ranges::any_of(laws, [](const SweepLaw& law) {
    return std::ranges::any_of(law.series, [](const SeriesLaw& series) {
      return series.analysis || series.configurations.size() >= 3;
    });
  });
}

Answer MakeAnswer(const SweepData& data, const SweepArms& arms, const std::vector<SweepLaw>& laws) {
  Answer answer;
  AddLead(data, arms, laws, &answer.lead);
  for (const char* size : {"dense_parameters", "multiply_adds"}) {
    const SweepLaw* logloss = Find(laws, Metric::kLogloss, size);
    const SweepLaw* auc = Find(laws, Metric::kAuc, size);
    if (logloss == nullptr || logloss->comparisons.size() > kMostPairs) continue;
    for (const ModelComparison& comparison : logloss->comparisons) {
      const ModelComparison* other = nullptr;
      for (const ModelComparison& each : auc->comparisons) {
        if (each.first == comparison.first && each.second == comparison.second) other = &each;
      }
      answer.at_size.push_back(Compared(comparison, other));
    }
  }
  const SweepLaw* law = Find(laws, Metric::kLogloss, "dense_parameters");
  if (law == nullptr || !HaveSizes(laws)) return answer;
  for (const SeriesLaw& series : law->series) {
    answer.details.push_back(series.series + ": " + SeriesText(*law, series));
  }
  if (data.series.size() > kMostSeries) {
    answer.details.push_back(
        Format("%zu more series are in the tables alone.", data.series.size() - kMostSeries));
  }
  return answer;
}

}  // namespace elastor
