#include "launcher/sweep_report/page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/html.h"
#include "launcher/sweep_report/answer.h"

namespace elastor {
namespace {

constexpr size_t kDigestShown = 12;
constexpr size_t kMostSpectra = 100;     // rows of the table of ranks
constexpr size_t kMostUnfinished = 300;  // of runs that are not done, in tables
constexpr size_t kMostEmbedded = 2000;   // points in the page's JSON

Cell Measured(const std::optional<double>& value) {
  return value ? NumberCell(Format("%.5f", *value), *value) : Cell{.text = "", .number = true};
}
std::string IntervalText(const char* format, const Interval& interval) {
  char low[32], high[32];
  std::snprintf(low, sizeof(low), format, interval.low);
  std::snprintf(high, sizeof(high), format, interval.high);
  return StrCat("[", low, ", ", high, "]");
}

std::vector<Cell> LawRow(const SweepLaw& law, const SeriesLaw& series) {
  std::string sizes;
  for (const std::string& size : law.sizes) {
    sizes += (sizes.empty() ? "" : ", ") + std::string(SizeTitle(size));
  }
  std::vector<Cell> row = {
      {.text = ShownName(law.metric)}, {.text = sizes}, {.text = series.series}};
  if (!series.analysis) {
    row.push_back({.text = "not fitted: " + series.why_not});
    row.resize(9);
    return row;
  }
  const Analysis& analysis = *series.analysis;
  row.push_back({.html = EscapedFormula(LawText(law, analysis))});
  std::string exponents;
  for (size_t k = 0; k < law.sizes.size(); ++k) {
    exponents += (k == 0 ? "" : " ") + IntervalText("%.3f", ExponentInterval(analysis, k));
  }
  row.push_back({.text = exponents});
  const Identification& identification = analysis.identification;
  std::string reasons;
  for (const std::string& reason : identification.reasons) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  std::ranges::replace(reasons, '_', ' ');
  row.push_back({.html = identification.identified()
                             ? "<span class=\"yes\">identified</span>"
                             : "<details><summary class=\"no\">not identified</summary>" +
                                   Escaped(reasons) + "</details>"});
  if (!analysis.hold_out) {
    row.push_back({.text = "no size can be spared"});
    row.resize(9);
    return row;
  }
  const HoldOut& hold_out = *analysis.hold_out;
  std::string errors, naive;
  for (const HeldOut& held : hold_out.held_out) {
    errors += (errors.empty() ? "" : ", ") + SignedPercent(held.error);
    naive += (naive.empty() ? "" : ", ") + SignedPercent(held.last_value_error) + " / " +
             SignedPercent(held.log_linear_error);
  }
  row.push_back(
      {.html = Escaped(errors) + (hold_out.breaks_law() ? " <span class=\"no\">breaks</span>"
                                                        : " <span class=\"yes\">follows</span>")});
  row.push_back({.text = naive});
  row.push_back({.text = Format("\u00b1%.2f\u00a0%%", 100 * NoiseOfMeans(series))});
  return row;
}

std::string LawTable(const SweepReport& report) {
  std::vector<std::vector<Cell>> rows;
  for (const SweepLaw& law : report.laws) {
    if (law.metric == Metric::kNormalizedEntropy) continue;
    for (const SeriesLaw& series : law.series) rows.push_back(LawRow(law, series));
  }
  return Table(
      "The fitted laws. N dense parameters, M multiply-adds, D training samples; intervals are 95 "
      "%. Hold-out errors are signed, relative to the loss (of the AUC: 1 \u2212 AUC), in order of "
      "size, beside those of the last value and of a log-linear fit, and the noise of a mean.",
      {Heading("metric"), Heading("over"), Heading("model"), Heading("law"), Heading("exponents"),
       Heading("verdict"), Heading("hold-out"), Heading("last value / log-linear"),
       Heading("noise")},
      rows, /*sortable=*/false);
}

// Every comparison at the sizes that both models have, and a step beyond.
std::string ComparisonTable(const SweepReport& report) {
  std::vector<std::vector<Cell>> rows;
  for (const SweepLaw& law : report.laws) {
    if (law.metric == Metric::kNormalizedEntropy) continue;
    for (const ModelComparison& comparison : law.comparisons) {
      for (const ComparedPrediction& at : comparison.predictions) {
        // The difference is one of losses, so a difference of AUCs has the opposite sign.
        const double sign = law.metric == Metric::kAuc ? -1 : 1;
        Interval interval = {sign * at.difference.low, sign * at.difference.high};
        if (interval.low > interval.high) std::swap(interval.low, interval.high);
        const bool beyond = &at == &comparison.predictions.back();
        rows.push_back(
            {{.text = ShownName(law.metric)},
             {.text = SizeTitle(comparison.size_name)},
             NumberCell(PrefixedNumber(at.size, 3) + (beyond ? " (beyond)" : ""), at.size),
             {.text = comparison.first + " \u2212 " + comparison.second},
             NumberCell(SignedNumber(sign * (at.first - at.second)), 0),
             NumberCell("[" + SignedNumber(interval.low) + ", " + SignedNumber(interval.high) + "]",
                        0),
             {.html = at.told_apart() ? "<span class=\"yes\">" +
                                            Escaped((at.difference.low > 0 ? comparison.second
                                                                           : comparison.first) +
                                                    " is better") +
                                            "</span>"
                                      : std::string("not told apart")}});
      }
    }
  }
  if (rows.empty()) return "";
  return Table(
      "Models compared by their laws at equal sizes: the ends and the middle of the range "
      "that both have, and a step beyond; 95 % intervals of the difference.",
      {Heading("metric"), Heading("at equal"), Heading("size", true), Heading("difference of"),
       Heading("difference", true), Heading("95 % interval", true), Heading("verdict")},
      rows, /*sortable=*/false);
}

// Days and flags are not broken at their hyphens where a line has room for them.
std::string WholeWords(const std::string& text) {
  std::string html;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = Escaped(text.substr(begin, end - begin));
    html += begin == 0 ? "" : " ";
    html += word.find('-') == word.npos ? word : "<span class=\"word\">" + word + "</span>";
    begin = end + 1;
  }
  return html;
}

std::string AnswerHtml(const SweepReport& report) {
  const Answer answer = MakeAnswer(report.data, report.arms, report.laws);
  std::string text = "<div class=\"answer\">\n";
  for (size_t i = 0; i < answer.lead.size(); ++i) {
    text += (i == 0 ? "<p class=\"lead\">" : "<p>") + EscapedFormula(answer.lead[i]) + "</p>\n";
  }
  for (const std::string& sentence : answer.at_size) text += Paragraph(sentence);
  if (answer.details.empty()) return text + "</div>\n";
  text += "<details><summary>The laws in words</summary>\n<ul>\n";
  for (const std::string& sentence : answer.details) {
    const size_t colon = sentence.find(": ");
    text += colon == sentence.npos ? "<li>" + EscapedFormula(sentence)
                                   : "<li><strong>" + Escaped(sentence.substr(0, colon)) +
                                         "</strong>" + EscapedFormula(sentence.substr(colon));
    text += "</li>\n";
  }
  return text + "</ul>\n</details>\n</div>\n";
}

// Names of the finished runs: their setting and their seed.
std::map<const SweepRun*, std::string> RunNames(const SweepArms& arms) {
  std::map<const SweepRun*, std::string> names;
  for (const Setting& setting : arms.settings) {
    for (const SweepRun* run : setting.runs) {
      names[run] = setting.name + (setting.planned > 1 ? StrCat(", seed ", run->seed) : "");
    }
  }
  return names;
}

// Ranks over the stages, as a line of 150 by 28 pixels: dashed at the first measurement.
std::string Sparkline(const SweepRun& run, double StageRank::*kind, double most) {
  constexpr double kWidth = 150, kHeight = 28, kPad = 3;
  const auto path = [&](const std::vector<StageRank>& ranks) {
    std::string points;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const double x = kPad + (kWidth - 2 * kPad) * static_cast<double>(i) /
                                  std::max(1.0, static_cast<double>(ranks.size() - 1));
      const double y = kHeight - kPad - (kHeight - 2 * kPad) * ranks[i].*kind / most;
      points += (i == 0 ? "M" : " ") + Format("%.1f %.1f", x, y);
    }
    return points;
  };
  std::string tip;
  for (size_t i = 0; i < run.last_ranks.size(); ++i) {
    const StageRank& last = run.last_ranks[i];
    tip += (i == 0 ? "" : "\n") + last.stage + " ";
    if (run.first_step != run.last_step && i < run.first_ranks.size()) {
      tip += Format("%.2f \u2192 ", run.first_ranks[i].*kind);
    }
    tip += Format("%.2f of %.0f", last.*kind, last.most);
  }
  std::string svg = Format(
                        "<svg role=\"img\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
                        "%.0f\"><title>",
                        kWidth, kHeight, kWidth, kHeight) +
                    Escaped(tip) + "</title>";
  if (run.first_step != run.last_step) {
    svg += "<path class=\"ghost\" d=\"" + path(run.first_ranks) + "\"/>";
  }
  return svg + "<path class=\"c0 line\" d=\"" + path(run.last_ranks) + "\"/></svg>";
}

std::string RankText(const SweepRun& run, double StageRank::*kind, bool at_end) {
  const auto of = [&](const std::vector<StageRank>& ranks) {
    return Format("%.2f", (at_end ? ranks.back() : ranks.front()).*kind);
  };
  return run.first_step == run.last_step ? of(run.last_ranks)
                                         : of(run.first_ranks) + " \u2192 " + of(run.last_ranks);
}

std::string SpectraHtml(const SweepData& data) {
  std::vector<std::vector<Cell>> rows;
  size_t measured = 0;
  double most[2] = {1, 1};
  double StageRank::*const kinds[] = {&StageRank::stable, &StageRank::entropy};
  for (const SweepRun& run : data.runs) {
    for (const StageRank& rank : run.last_ranks) {
      for (int k = 0; k < 2; ++k) most[k] = std::max(most[k], rank.*kinds[k]);
    }
    for (const StageRank& rank : run.first_ranks) {
      for (int k = 0; k < 2; ++k) most[k] = std::max(most[k], rank.*kinds[k]);
    }
  }
  bool training = false;
  for (const SweepRun& run : data.runs) {
    if (run.last_ranks.empty() || measured++ >= kMostSpectra) continue;
    training = training || run.first_step != run.last_step;
    std::vector<Cell> row = {
        {.text = run.series},
        NumberCell(PrefixedNumber(static_cast<double>(run.plan.dense_parameters), 3),
                   static_cast<double>(run.plan.dense_parameters)),
        NumberCell(std::to_string(run.seed), static_cast<double>(run.seed))};
    for (int k = 0; k < 2; ++k) {
      Cell line = NumberCell("", run.last_ranks.back().*kinds[k]);
      line.number = false;
      line.html = Sparkline(run, kinds[k], most[k]);
      row.push_back(std::move(line));
      row.push_back({.text = RankText(run, kinds[k], false), .number = true});
      row.push_back({.text = RankText(run, kinds[k], true), .number = true});
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    return Paragraph("The runs measured no effective ranks (spectrum.disabled).");
  }
  std::string caption =
      "Effective ranks of the representations, means over the measured rows, from the embedding "
      "(left) "
      "through the tokens and every block to the last stage (right); lines of a kind share their "
      "scale. Names and values of the stages stand under the pointer and in spectra.csv.";
  caption += training
                 ? " Dashed, and before the arrow: at the first measurement; solid: at the last."
                 : " Each run was measured once, at its end (spectrum.at_start adds the "
                   "initial ranks).";
  if (measured > kMostSpectra)
    caption += Format(" The first %zu of %zu runs.", kMostSpectra, measured);
  return Table(
      caption,
      {Heading("model"), Heading("parameters", true), Heading("seed", true),
       Heading("stable rank by stage"), Heading("first stage", true), Heading("last stage", true),
       Heading("entropy rank by stage"), Heading("first stage", true), Heading("last stage", true)},
      rows, /*sortable=*/true);
}

std::string GapText(const GapDifference& gap) {
  return SignedNumber(gap.value) + " [" + SignedNumber(gap.interval.low) + ", " +
         SignedNumber(gap.interval.high) + "]";
}

std::string GapTable(const SweepData& data) {
  std::vector<std::vector<Cell>> rows;
  for (const TestedGap& gap : data.gaps) {
    std::vector<Cell>& row = rows.emplace_back();
    row.push_back({.text = gap.arms[0].name + ", " + gap.arms[1].name});
    row.push_back({.text = Format("%zu, %zu", gap.arms[0].runs.size(), gap.arms[1].runs.size())});
    if (!gap.why_not.empty()) {
      row.push_back({.text = "not tested: " + gap.why_not});
      row.resize(9);
      continue;
    }
    const EnergyTest& test = gap.test;
    row.push_back(NumberCell(Format("%.3g", test.distance), test.distance));
    row.push_back(NumberCell(Format("%.3g", test.p), test.p));
    row.push_back({.text = Format("%s %lld", test.exact ? "all" : "drawn",
                                  static_cast<long long>(test.labellings))});
    row.push_back({.text = GapText(test.mean), .number = true});
    const double bound = test.mean.equivalence_bound();
    row.push_back(NumberCell(Format("%.4f", bound), bound));
    row.push_back({.text = GapText(test.last), .number = true});
    const auto& equal = test.equal_loss;
    row.push_back({.text = equal ? GapText(equal->gap) + Format(" at %.4f", equal->loss) : "none",
                   .number = true});
  }
  return Table(
      "Have two arms the same training loss and generalisation gap? Whole runs are permuted; p is "
      "the share of labellings with an energy distance no smaller than the arms' own. A p of 0.05 "
      "or more does not show that gaps are equal: the bound says within what they are. Differences "
      "are second less first, with the 95 % interval of the same labellings: of a run's mean over "
      "its evaluations, at its last one, and where its training loss reached what all runs "
      "reached.",
      {Heading("arms"), Heading("runs"), Heading("energy distance", true), Heading("p", true),
       Heading("labellings"), Heading("difference of the mean gaps", true),
       Heading("equivalence bound", true), Heading("of the last", true),
       Heading("at equal training loss", true)},
      rows, /*sortable=*/false);
}

std::string KernelTable(const SweepData& data) {
  std::vector<std::vector<Cell>> rows;
  for (const ConditionNumbers& each : ConditionNumbersOf(data)) {
    std::vector<Cell>& row = rows.emplace_back();
    row.push_back({.text = each.series});
    const auto parameters = static_cast<double>(each.dense_parameters);
    row.push_back(NumberCell(PrefixedNumber(parameters, 3), parameters));
    row.push_back({.text = each.layer});
    row.push_back({.text = each.last ? "last" : "first"});
    std::string steps = std::to_string(each.least_step);
    if (each.most_step > each.least_step) StrAppend(&steps, " to ", each.most_step);
    row.push_back(NumberCell(steps, static_cast<double>(each.least_step)));
    row.push_back(NumberCell(std::to_string(each.rows), static_cast<double>(each.rows)));
    row.push_back({.text = Format("%zu of %d", each.log10.size(), each.runs)});
    if (each.log10.empty()) {
      row.push_back({.text = "unresolved"});
      continue;
    }
    const ChartPoint mean = MeanWithInterval(each.log10);
    row.push_back(NumberCell(each.log10.size() > 1
                                 ? Format("%.2f \u00b1 %.2f", mean.y, mean.high - mean.y)
                                 : Format("%.2f", mean.y),
                             mean.y));
  }
  return Table(
      "Condition numbers of the neural tangent kernel: log\u2081\u2080, means over the runs in "
      "which the least eigenvalue is resolved, with 95 % intervals. All runs are in kernels.csv.",
      {Heading("model"), Heading("dense parameters", true), Heading("part"), Heading("measurement"),
       Heading("step", true), Heading("rows", true), Heading("resolved"),
       Heading("log\u2081\u2080 \u03ba", true)},
      rows, /*sortable=*/true);
}

// The runs that the table has room for.
std::vector<const SweepRun*> ListedRuns(const SweepData& data) {
  std::vector<const SweepRun*> listed;
  for (const SweepRun& run : data.runs) {
    if (run.done() && listed.size() < kMostRows) listed.push_back(&run);
  }
  return listed;
}

std::string RunsHtml(const SweepReport& report) {
  const SweepData& data = report.data;
  std::map<const SweepRun*, std::string> names = RunNames(report.arms);
  const std::vector<const SweepRun*> listed = ListedRuns(data);
  if (listed.empty()) return Paragraph("No run is done yet.");
  const bool grouped = std::ranges::any_of(
      listed, [](const SweepRun* run) { return run->status.result->metrics.gauc.has_value(); });
  // Labels of axes stand in the folder's name already.
  std::vector<size_t> fields;
  for (size_t c = 0; c < data.columns.size(); ++c) {
    if (data.columns[c].find('.') != std::string::npos) fields.push_back(c);
  }
  std::vector<Cell> headings = {Heading("run"), Heading("split"), Heading("logloss", true),
                                Heading("AUC", true)};
  if (grouped) headings.push_back(Heading("gAUC", true));
  for (const char* name : {"parameters", "multiply-adds", "seconds", "samples/s"}) {
    headings.push_back(Heading(name, true));
  }
  headings.push_back(Heading("digest"));
  for (const size_t c : fields) {
    const std::string& column = data.columns[c];
    headings.push_back(Heading(column.substr(column.rfind('.') + 1), false, column));
  }
  std::vector<std::vector<Cell>> rows;
  for (const SweepRun* run : listed) {
    const Summary& result = *run->status.result;
    std::vector<Cell> row = {{.text = names[run]},
                             {.text = result.split},
                             Measured(Finite(result.metrics.logloss)),
                             Measured(result.metrics.auc)};
    if (grouped) row.push_back(Measured(result.metrics.gauc));
    for (const int64_t count : {run->plan.dense_parameters, run->plan.multiply_adds}) {
      const auto value = static_cast<double>(count);
      row.push_back(NumberCell(NumberText(value, 0), value));
    }
    row.push_back(NumberCell(Format("%.1f", result.wall_s), result.wall_s));
    row.push_back(NumberCell(NumberText(result.samples_per_s, 0), result.samples_per_s));
    row.push_back({.text = result.state_digest.substr(0, kDigestShown),
                   .title = result.state_digest,
                   .code = true});
    for (const size_t c : fields) row.push_back({.text = run->plan.columns[c]});
    rows.push_back(std::move(row));
  }
  const int done = data.Count(RunState::kDone);
  std::string caption =
      "Finished runs, in the sweep's order. A click on a heading, or Enter, sorts.";
  if (rows.size() < static_cast<size_t>(done)) {
    caption += Format(" The first %zu of %d; all are in runs.csv.", rows.size(), done);
  }
  return Table(caption, headings, rows, /*sortable=*/true);
}

std::string UnfinishedHtml(const SweepData& data) {
  std::vector<std::vector<Cell>> failures, waiting;
  size_t failed = 0, unfinished = 0;
  for (const SweepRun& run : data.runs) {
    const Attempts& attempts = run.status.attempts;
    if (run.status.state == RunState::kFailed && failed++ < kMostUnfinished) {
      failures.push_back({{.text = run.plan.folder, .code = true},
                          {.text = CauseOfAttempt(attempts.exit_code)},
                          NumberCell(std::to_string(attempts.exit_code), attempts.exit_code),
                          NumberCell(std::to_string(attempts.started), attempts.started),
                          {.text = attempts.last_line}});
    } else if (!run.done() && run.status.state != RunState::kFailed &&
               unfinished++ < kMostUnfinished) {
      waiting.push_back({{.text = run.plan.folder, .code = true},
                         {.text = run.status.state == RunState::kWaiting ? "has not begun"
                                                                         : "begun, not finished"},
                         NumberCell(std::to_string(attempts.started), attempts.started)});
    }
  }
  std::string text;
  if (failed == 0) {
    text += Paragraph("No run failed.");
  } else {
    std::string caption = Format("Failed runs: %zu.", failed);
    if (failed > failures.size())
      caption += Format(" The first %zu; all are in runs.csv.", failures.size());
    text += Table(caption,
                  {Heading("run"), Heading("cause"), Heading("exit code", true),
                   Heading("attempts", true), Heading("last line of its log")},
                  failures, /*sortable=*/true);
  }
  if (unfinished == 0) return text;
  std::string caption = Format("Runs that are not finished: %zu.", unfinished);
  if (unfinished > waiting.size()) {
    caption += Format(" The first %zu; all are in runs.csv.", waiting.size());
  }
  return text + Table(caption, {Heading("run"), Heading("state"), Heading("attempts", true)},
                      waiting, /*sortable=*/true);
}

// "3 sizes of 0.001, 2 of 0.003"; what of the recipe differs between sizes bends a law.
std::string LearningRates(const SweepData& data) {
  std::string text;
  for (const std::string& series : data.series) {
    std::map<double, std::set<int64_t>> sizes;
    for (const SweepRun& run : data.runs) {
      if (run.series == series && run.learning_rate) {
        sizes[*run.learning_rate].insert(run.plan.dense_parameters);
      }
    }
    std::string rates;
    for (const auto& [rate, of_sizes] : sizes) {
      rates += (rates.empty() ? "" : "; ") + Format("%.6g", rate);
      if (sizes.size() == 1) {
        rates += " for every size";
        continue;
      }
      rates += " for ";
      for (const int64_t size : of_sizes) {
        rates +=
            (size == *of_sizes.begin() ? "" : ", ") + PrefixedNumber(static_cast<double>(size), 3);
      }
    }
    if (!rates.empty()) text += (text.empty() ? "" : ". ") + series + ": " + rates;
  }
  return text;
}

std::string FitSettings(const SweepReport& report) {
  std::string starts, deltas, excluded, held;
  size_t without_value = 0;
  for (const SweepRun& run : report.data.runs) {
    without_value += run.done() && !run.Loss(Metric::kLogloss);
  }
  for (const SweepLaw& law : report.laws) {
    if (law.metric != Metric::kLogloss) continue;
    for (const SeriesLaw& series : law.series) {
      if (!series.analysis) continue;
      const Analysis& analysis = *series.analysis;
      const std::string who =
          series.series + " over " + SizeTitle(law.sizes[0]) +
          (law.sizes.size() > 1 ? std::string(" and ") + SizeTitle(law.sizes[1]) : std::string());
      const auto add = [](std::string* text, const std::string& part) {
        *text += (text->empty() ? "" : "; ") + part;
      };
      add(&starts,
          who + Format(": %d distinct %s from %d starts", analysis.fit.optima,
                       analysis.fit.optima == 1 ? "optimum" : "optima", analysis.fit.starts));
      const auto exponents = [](const Law& fitted) {
        std::string text;
        for (const double exponent : fitted.exponents) text += Format(" %.3f", exponent);
        return text;
      };
      add(&deltas, who + Format(": %.3g", analysis.delta) + ", exponents" +
                       exponents(analysis.fit.law) + "; with a tenth" +
                       exponents(analysis.tenth_of_delta) + ", with ten times" +
                       exponents(analysis.ten_times_delta));
      if (!analysis.hold_out) continue;
      std::string sizes;
      for (const HeldOut& out : analysis.hold_out->held_out) {
        for (size_t k = 0; k < out.sizes.size(); ++k) {
          sizes += (k > 0 ? "\u00d7" : sizes.empty() ? "" : ", ") + PrefixedNumber(out.sizes[k], 3);
        }
      }
      add(&held, who + ": " + sizes);
    }
  }
  std::string text = "<dl>\n";
  text +=
      Definition("Parametrisation",
                 "L = E + \u03a3 A x^\u2212\u03b1 with E, A \u2265 0 and \u03b1 from 0.02 to 4; "
                 "L is the logloss, 1 \u2212 AUC, or the normalised entropy");
  text +=
      Definition("Loss of the fit",
                 "Huber's on log(observed) \u2212 log(fitted), over runs; E and A by "
                 "non-negative least squares inside a search over \u03b1 (variable projection)");
  text += Definition("Huber's \u03b4",
                     deltas.empty()
                         ? "no law was fitted"
                         : "Twice the runs' spread about the law. Of the logloss: " + deltas);
  text += Definition("Starts and optima",
                     starts.empty() ? "no law was fitted" : "Of the logloss: " + starts);
  text += Definition("Intervals", Format("%d replicates with the noise of sizes and of seeds, "
                                         "percentiles; draws of seed %llu",
                                         report.options.replicates,
                                         static_cast<unsigned long long>(report.options.seed)));
  text += Definition("Left out of the fits", without_value > 0
                                                 ? StrCat(without_value,
                                                          " finished runs without the metric, and "
                                                          "runs that are not done")
                                                 : "nothing but runs that are not done");
  text += Definition("Held out",
                     held.empty() ? "nothing" : "The largest quarter. Of the logloss: " + held);
  text += Definition("Learning rates", LearningRates(report.data));
  return text + "</dl>\n";
}

// Folders are named by labels and a hash when runs begin, whatever the labels are now.
std::string FolderTable(const SweepReport& report, const std::vector<const SweepRun*>& listed) {
  std::map<const SweepRun*, std::string> names = RunNames(report.arms);
  std::vector<std::vector<Cell>> rows;
  for (const SweepRun* run : listed) {
    rows.push_back({{.text = names[run]}, {.text = run->plan.folder, .code = true}});
  }
  if (rows.empty()) return "";
  return "<details><summary>The runs' folders</summary>\n" +
         Table("Folders in runs/.", {Heading("run"), Heading("folder")}, rows,
               /*sortable=*/false) +
         "</details>\n";
}

std::string ProvenanceHtml(const SweepReport& report) {
  const SweepData& data = report.data;
  std::string text = "<dl>\n";
  for (const auto& [name, value] : data.provenance) text += Definition(name, value);
  text += "</dl>\n<h3>How the laws were fitted</h3>\n" + FitSettings(report);
  text += "<h3>The sweep, as it was run</h3>\n";
  if (data.sweep_text.empty()) {
    text += Paragraph("The folder has no sweep.textproto: an older launcher ran it.");
  } else {
    text += "<details><summary>sweep.textproto, its base with all changes</summary><pre>" +
            Escaped(data.sweep_text) + "</pre></details>\n";
  }
  text += Paragraph(
      "Every run's experiment, with all its defaults, is in experiments/; its "
      "own folder has it too, beside metrics, model and summary.");
  std::string commands;
  const std::vector<const SweepRun*> listed = ListedRuns(data);
  for (const SweepRun* run : listed) commands += Escaped(run->command) + "\n";
  text += FolderTable(report, listed);
  text += "<h3>To repeat a run</h3>\n" +
          Paragraph(
              "Into another --output_dir: on any machine, with any ranks and threads, the "
              "digest in the table is that of the repeated run, if the numerics above are.");
  if (commands.empty()) return text;
  return text + "<details><summary>" +
         Escaped(Format("The commands of %s%zu runs",
                        listed.size() == kMostRows ? "the first " : "", listed.size())) +
         "</summary><pre>" + commands + "</pre></details>\n";
}

std::string DataJson(const SweepReport& report) {
  Json points = Json::array();
  for (const SweepLaw& law : report.laws) {
    for (const SeriesLaw& series : law.series) {
      for (const Configuration& configuration : series.configurations) {
        if (points.size() >= kMostEmbedded) break;
        Json values = Json::array();
        for (const double value : configuration.values) values.push_back(Shown(law.metric, value));
        if (values.size() > kMostEmbedded / 100) values = Json::array();
        Json point = {{"metric", MetricName(law.metric)},
                      {"sizes", law.sizes},
                      {"model", series.series},
                      {"at", configuration.sizes},
                      {"values", std::move(values)}};
        if (series.analysis) {
          point["fitted"] = Shown(law.metric, series.analysis->fit.law.At(configuration.sizes));
        }
        points.push_back(std::move(point));
      }
    }
  }
  return Json{{"sweep", report.data.name}, {"points", std::move(points)}}.dump();
}

}  // namespace

std::string ToHtml(const SweepReport& report) {
  const SweepData& data = report.data;
  const std::string progress = ProgressText(data);
  const bool whole = data.Count(RunState::kDone) == static_cast<int>(data.runs.size());
  std::string body = "<header>\n<p class=\"kicker\">Elastor sweep report</p>\n<h1>" +
                     Escaped(data.name.empty() ? "Sweep" : data.name) +
                     "</h1>\n<p class=\"state\">" + Escaped(progress) +
                     (data.evaluated.empty() ? "" : ", measured on " + Escaped(data.evaluated)) +
                     ".</p>\n";
  if (!data.made.empty()) body += "<p class=\"note\">" + WholeWords(data.made) + "</p>\n";
  if (!whole) {
    body +=
        "<p class=\"no\">The sweep is not complete: what follows is of the runs that are "
        "done.</p>\n";
  }
  StrAppend(&body, "<nav aria-label=\"Sections\"><a href=\"#compared\">Compared</a> ",
            data.trials.empty() ? "" : "<a href=\"#tuning\">Tuning</a> ",
            "<a href=\"#laws\">Laws</a> <a href=\"#cost\">Cost</a> <a "
            "href=\"#ranks\">Effective ranks</a> ",
            data.gaps.empty() ? "" : "<a href=\"#gaps\">Generalisation gaps</a> ",
            report.kernels.figures.empty() ? "" : "<a href=\"#kernels\">Condition numbers</a> ",
            "<a href=\"#throughput\">Throughput</a> <a "
            "href=\"#runs\">Runs</a> <a href=\"#failures\">Failures</a> <a "
            "href=\"#provenance\">Provenance</a></nav>\n</header>\n");
  body += "<section aria-label=\"Answer\">\n" + AnswerHtml(report) + "</section>\n";
  body += "<section id=\"compared\">\n<h2>The settings compared</h2>\n" + FiguresHtml(report.grid) +
          SettingTable(report.arms) + FiguresHtml(report.forest) + DifferenceTable(report.arms) +
          "</section>\n";
  if (!data.trials.empty()) {
    body += "<section id=\"tuning\">\n<h2>Tuning</h2>\n" + SearchText(data) +
            FiguresHtml(report.tuning) + TrialTable(data) + "</section>\n";
  }
  body += "<section id=\"laws\">\n<h2>How quality grows with size</h2>\n";
  for (const FigureGroup& group : report.law_figures) body += FiguresHtml(group);
  body += HaveSizes(report.laws) ? "<details><summary>Details of the fits</summary>\n" +
                                       LawTable(report) + ComparisonTable(report) + "</details>\n"
                                 : Paragraph("No law is fitted: no model has three sizes.");
  body += "</section>\n";
  body += "<section id=\"cost\">\n<h2>What quality costs</h2>\n" + FiguresHtml(report.pareto) +
          "</section>\n";
  body += "<section id=\"ranks\">\n<h2>Effective ranks</h2>\n" + SpectraHtml(data) + "</section>\n";
  if (!data.gaps.empty()) {
    body += "<section id=\"gaps\">\n<h2>Generalisation gaps</h2>\n" + GapTable(data) +
            FiguresHtml(report.gaps) + "</section>\n";
  }
  if (!report.kernels.figures.empty()) {
    body += "<section id=\"kernels\">\n<h2>Condition numbers</h2>\n" + FiguresHtml(report.kernels) +
            "<details><summary>All condition numbers</summary>\n" + KernelTable(data) +
            "</details>\n</section>\n";
  }
  body += "<section id=\"throughput\">\n<h2>Throughput</h2>\n" + FiguresHtml(report.throughput) +
          "</section>\n";
  body += "<section id=\"runs\">\n<h2>Runs</h2>\n" + RunsHtml(report) + "</section>\n";
  body += "<section id=\"failures\">\n<h2>Failures</h2>\n" + UnfinishedHtml(data) + "</section>\n";
  body += "<section id=\"provenance\">\n<h2>Provenance</h2>\n" + ProvenanceHtml(report) +
          "</section>\n";
  return Page(data.name + " \u2013 Elastor sweep report", body, DataJson(report));
}

}  // namespace elastor
