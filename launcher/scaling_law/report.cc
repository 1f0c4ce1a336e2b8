#include "launcher/scaling_law/report.h"

#include <cmath>

#include "core/base/json.h"
#include "core/base/text.h"
#include "launcher/scaling_law/sizes.h"

namespace elastor {
namespace {

std::string LossName(Metric metric) {
  return metric == Metric::kAuc ? "1 - auc" : MetricName(metric);
}

std::string LawText(const Analysis& analysis) {
  const Law& law = analysis.fit.law;
  std::string text = Format("%.5g", law.limit);
  for (size_t k = 0; k < law.exponents.size(); ++k) {
    text += Format(" + %.4g %s^-%.3f", PlainCoefficient(law, k), analysis.size_names[k].c_str(),
                   law.exponents[k]);
  }
  return text;
}

std::string ParametersText(const Law& law) {
  std::string text = Format("E %.5g, exponents", law.limit);
  if (law.exponents.size() == 1) text.pop_back();
  for (const double exponent : law.exponents) text += Format(" %.3f", exponent);
  return text;
}

Interval LimitInterval(const Analysis& analysis) {
  return analysis.bootstrap.Of([](const Law& law) { return law.limit; });
}

Interval ExponentInterval(const Analysis& analysis, size_t k) {
  return analysis.bootstrap.Of([k](const Law& law) { return law.exponents[k]; });
}

Interval CoefficientInterval(const Analysis& analysis, size_t k) {
  return analysis.bootstrap.Of([k](const Law& law) { return PlainCoefficient(law, k); });
}

std::string HoldOutText(const Analysis& analysis) {
  if (!analysis.hold_out) {
    return "  hold-out: none, no size can be spared; nothing shows that the law predicts\n";
  }
  const HoldOut& hold_out = *analysis.hold_out;
  std::string text = Format("  hold-out: fitted to the %d smallest of %zu sizes, signed errors:\n",
                            hold_out.fitted, analysis.configurations.size());
  for (const HeldOut& held : hold_out.held_out) {
    text += Format("    %s: observed %.5g, predicted %.5g [%.5g, %.5g], %+.3f %%\n",
                   SizesText(analysis.size_names, held.sizes).c_str(), held.observed,
                   held.predicted, held.interval.low, held.interval.high, 100 * held.error);
    text += Format("      last value %+.3f %%, log-linear %+.3f %%\n", 100 * held.last_value_error,
                   100 * held.log_linear_error);
  }
  text += hold_out.breaks_law() ? "    the largest sizes BREAK the law of the smaller ones"
                                : "    the largest sizes follow the law of the smaller ones";
  text += Format(" (seeds' spread %.3f %%, sizes' %.3f %%)\n", 100 * hold_out.seed_spread,
                 100 * hold_out.size_spread);
  const double law = hold_out.RootMeanSquare(&HeldOut::error);
  const bool beats_last = law < hold_out.RootMeanSquare(&HeldOut::last_value_error);
  const bool beats_line = law < hold_out.RootMeanSquare(&HeldOut::log_linear_error);
  if (!beats_last || !beats_line) {
    text += Format("    the law predicts no better than %s\n",
                   beats_line   ? "the last value"
                   : beats_last ? "a straight line over log(size)"
                                : "the last value or a straight line over log(size)");
  }
  return text;
}

std::string AnalysisText(const Analysis& analysis, Metric metric) {
  size_t runs = 0;
  for (const Configuration& configuration : analysis.configurations) {
    runs += configuration.values.size();
  }
  std::string text = analysis.model + ": " + LossName(metric) + " = " + LawText(analysis) + "\n";
  text += Format("  %zu runs of %zu sizes", runs, analysis.configurations.size());
  if (analysis.seed_spread) text += Format(", seeds' spread %.3f %%", 100 * *analysis.seed_spread);
  const LawNoise& noise = analysis.noise;
  text += noise.size_freedom > 0 ? Format("; sizes' spread %.3f %%, %d beyond the law's parameters",
                                          100 * noise.size_spread, noise.size_freedom)
                                 : std::string("; no size beyond the law's parameters");
  const Interval limit = LimitInterval(analysis);
  text += Format("\n  95 %% intervals: E [%.5g, %.5g]", limit.low, limit.high);
  for (size_t k = 0; k < analysis.size_names.size(); ++k) {
    const Interval interval = ExponentInterval(analysis, k);
    text += Format(", exponent of %s [%.3f, %.3f]", analysis.size_names[k].c_str(), interval.low,
                   interval.high);
  }
  text += Format("\n  Huber delta %.3g; with a tenth: %s; with ten times: %s\n", analysis.delta,
                 ParametersText(analysis.tenth_of_delta).c_str(),
                 ParametersText(analysis.ten_times_delta).c_str());
  text += Format("  %d distinct %s from %d starts\n", analysis.fit.optima,
                 analysis.fit.optima == 1 ? "optimum" : "optima", analysis.fit.starts);
  // The last configuration, and the two steps beyond.
  const char* const places[] = {"largest", "one step beyond", "two steps beyond"};
  for (size_t i = 0; i < 3; ++i) {
    const LawPrediction& prediction = analysis.predictions[analysis.predictions.size() - 3 + i];
    text += Format("  predicted, %s: %s: %.5g [%.5g, %.5g]\n", places[i],
                   SizesText(analysis.size_names, prediction.sizes).c_str(), prediction.value,
                   prediction.interval.low, prediction.interval.high);
  }
  text += HoldOutText(analysis);
  const Identification& identification = analysis.identification;
  text += identification.identified()
              ? "  verdict: identified\n"
              : "  verdict: NOT IDENTIFIED; use predictions near the data, not E or exponents\n";
  for (const std::string& reason : identification.reasons) text += "    " + reason + "\n";
  return text;
}

std::string ComparisonText(const ModelComparison& comparison, Metric metric) {
  const char* const first = comparison.first.c_str();
  const char* const second = comparison.second.c_str();
  std::string text = Format("%s - %s, %s at equal %s:", first, second, LossName(metric).c_str(),
                            comparison.size_name.c_str());
  if (comparison.predictions.empty()) return text + " " + comparison.why_not + "\n";
  text += "\n";
  for (const ComparedPrediction& at : comparison.predictions) {
    text += Format("  %.6g: %.5g - %.5g = %+.5f [%+.5f, %+.5f], %s\n", at.size, at.first, at.second,
                   at.first - at.second, at.difference.low, at.difference.high,
                   !at.told_apart()        ? "not told apart"
                   : at.difference.low > 0 ? (comparison.second + " is better").c_str()
                                           : (comparison.first + " is better").c_str());
  }
  return text;
}

Json JsonOf(const Interval& interval) { return Json::array({interval.low, interval.high}); }

Json JsonOf(const Law& law) {
  Json coefficients = Json::array();
  for (size_t k = 0; k < law.exponents.size(); ++k)
    coefficients.push_back(PlainCoefficient(law, k));
  return {{"limit", law.limit}, {"coefficients", coefficients}, {"exponents", law.exponents}};
}

Json JsonOf(const HoldOut& hold_out) {
  Json json = {{"fitted_configurations", hold_out.fitted},
               {"seed_spread", hold_out.seed_spread},
               {"size_spread", hold_out.size_spread},
               {"breaks_law", hold_out.breaks_law()},
               {"held_out", Json::array()}};
  for (const HeldOut& held : hold_out.held_out) {
    json["held_out"].push_back({{"sizes", held.sizes},
                                {"observed", held.observed},
                                {"predicted", held.predicted},
                                {"interval", JsonOf(held.interval)},
                                {"error", held.error},
                                {"last_value_error", held.last_value_error},
                                {"log_linear_error", held.log_linear_error},
                                {"breaks_law", held.breaks_law()}});
  }
  return json;
}

Json JsonOf(const Analysis& analysis) {
  Json json = {{"model", analysis.model},
               {"sizes", analysis.size_names},
               {"configurations", Json::array()},
               {"seed_spread", analysis.seed_spread ? Json(*analysis.seed_spread) : Json(nullptr)},
               {"size_spread", analysis.noise.size_spread},
               {"size_freedom", analysis.noise.size_freedom},
               {"delta", analysis.delta},
               {"law", JsonOf(analysis.fit.law)}};
  for (const Configuration& configuration : analysis.configurations) {
    json["configurations"].push_back(
        {{"sizes", configuration.sizes}, {"values", configuration.values}});
  }
  Json coefficients = Json::array(), exponents = Json::array(), profiles = Json::array();
  for (size_t k = 0; k < analysis.size_names.size(); ++k) {
    coefficients.push_back(JsonOf(CoefficientInterval(analysis, k)));
    exponents.push_back(JsonOf(ExponentInterval(analysis, k)));
    profiles.push_back(JsonOf(analysis.identification.profiles[k]));
  }
  json["intervals"] = {{"limit", JsonOf(LimitInterval(analysis))},
                       {"coefficients", coefficients},
                       {"exponents", exponents}};
  json["with_tenth_of_delta"] = JsonOf(analysis.tenth_of_delta);
  json["with_ten_times_delta"] = JsonOf(analysis.ten_times_delta);
  json["starts"] = analysis.fit.starts;
  json["optima"] = analysis.fit.optima;
  json["predictions"] = Json::array();
  for (const LawPrediction& prediction : analysis.predictions) {
    json["predictions"].push_back(
        {{"sizes", prediction.sizes},
         {"observed", prediction.observed ? Json(*prediction.observed) : Json(nullptr)},
         {"predicted", prediction.value},
         {"interval", JsonOf(prediction.interval)}});
  }
  json["hold_out"] = analysis.hold_out ? JsonOf(*analysis.hold_out) : Json(nullptr);
  const Identification& identification = analysis.identification;
  json["identified"] = identification.identified();
  json["reasons"] = identification.reasons;
  json["profiles"] = profiles;
  // Infinity when there are fewer configurations than parameters; JSON has none.
  json["condition"] = identification.condition;
  return json;
}

Json JsonOf(const ModelComparison& comparison) {
  Json json = {{"first", comparison.first},
               {"second", comparison.second},
               {"size", comparison.size_name},
               {"why_not", comparison.why_not.empty() ? Json(nullptr) : Json(comparison.why_not)},
               {"predictions", Json::array()}};
  for (const ComparedPrediction& at : comparison.predictions) {
    json["predictions"].push_back({{"size", at.size},
                                   {"first", at.first},
                                   {"second", at.second},
                                   {"difference", at.first - at.second},
                                   {"interval", JsonOf(at.difference)}});
  }
  return json;
}

}  // namespace

double PlainCoefficient(const Law& law, size_t k) {
  return law.coefficients[k] * std::pow(law.references[k], law.exponents[k]);
}

ModelComparison CompareModels(const Analysis& first, const Analysis& second,
                              const std::string& size_name, int comparisons) {
  ModelComparison comparison = {first.model, second.model, size_name,
                                Compare(first, second, comparisons), ""};
  if (comparison.predictions.empty()) comparison.why_not = "their ranges have nothing in common";
  return comparison;
}

std::string ToText(const ScalingReport& report) {
  std::string text;
  for (const Analysis& analysis : report.analyses) text += AnalysisText(analysis, report.metric);
  if (report.options.comparisons > 1) {
    text +=
        Format("Intervals of differences hold together in 95 %% of the cases for %d comparisons.\n",
               report.options.comparisons);
  }
  for (const ModelComparison& comparison : report.comparisons) {
    text += ComparisonText(comparison, report.metric);
  }
  return text;
}

std::string ToJson(const ScalingReport& report) {
  Json json = {{"metric", LossName(report.metric)},
               {"replicates", report.options.replicates},
               {"seed", report.options.seed},
               {"models", Json::array()},
               {"comparisons", Json::array()}};
  if (report.options.comparisons > 1) json["corrected_for"] = report.options.comparisons;
  for (const Analysis& analysis : report.analyses) json["models"].push_back(JsonOf(analysis));
  for (const ModelComparison& comparison : report.comparisons) {
    json["comparisons"].push_back(JsonOf(comparison));
  }
  return json.dump(2) + "\n";
}

}  // namespace elastor
