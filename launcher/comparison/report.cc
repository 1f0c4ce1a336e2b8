#include "launcher/comparison/report.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/base/text.h"
#include "core/report/csv.h"
#include "launcher/comparison/arm_sentences.h"

namespace elastor {
namespace {

using Row = std::vector<std::string>;

// The first row is the head.
std::string Table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size(), 3);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i) {
      text += "| " + rows[r][i] + std::string(widths[i] - rows[r][i].size() + 1, ' ');
    }
    text += "|\n";
    if (r > 0) continue;
    for (const size_t width : widths) text += "|" + std::string(width + 2, '-');
    text += "|\n";
  }
  return text;
}

std::string Shown(const char* format, const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return "[" + Format(format, interval->low) + ", " + Format(format, interval->high) + "]";
}

std::string ModelTable(const ComparedRuns& runs, const Comparison& comparison) {
  const bool grouped = std::ranges::any_of(
      comparison.models, [](const auto& model) { return model.gauc.has_value(); });
  std::vector<Row> rows = {{"model", "runs", "dense parameters", "AUC", "over rows", "over seeds",
                            "over both", "logloss", "over both"}};
  if (grouped) rows[0].insert(rows[0].end(), {"gAUC", "over seeds"});
  for (size_t i = 0; i < runs.models.size(); ++i) {
    const ModelFigures& figures = comparison.models[i];
    const ComparedModel& model = runs.models[i];
    rows.push_back({model.name, std::to_string(model.runs.size()),
                    std::to_string(model.dense_parameters), Format("%.5f", figures.auc.value),
                    Shown("%.4f", figures.auc.rows ? figures.auc.rows : figures.auc.delong),
                    Shown("%.5f", figures.auc.seeds), Shown("%.4f", figures.auc.both),
                    Format("%.5f", figures.logloss.value), Shown("%.4f", figures.logloss.both)});
    if (!grouped) continue;
    rows.back().push_back(figures.gauc ? Format("%.5f", *figures.gauc) : "-");
    rows.back().push_back(Shown("%.5f", figures.gauc_seeds));
  }
  return Table(rows);
}

// `larger_is_better`: of the metric.
std::string Order(const Uncertain& difference, bool larger_is_better, const std::string& first,
                  const std::string& second) {
  const bool alone = difference.both && (difference.both->low > 0 || difference.both->high < 0);
  if (!difference.differs_from_0()) return alone ? "none, corrected" : "none";
  return (difference.value > 0) == larger_is_better ? first + " is better" : second + " is better";
}

std::string PairTable(const ComparedRuns& runs, const Comparison& comparison,
                      const Uncertain PairFigures::*metric, bool larger_is_better) {
  std::vector<Row> rows = {{"difference", "value", "over rows, bootstrap",
                            larger_is_better ? "over rows, DeLong" : "over rows, normal",
                            "over seeds", "over both", "p, Holm", "order", "smallest shown"}};
  for (const PairFigures& pair : comparison.pairs) {
    const Uncertain& figures = pair.*metric;
    const std::string& first = runs.models[pair.first].name;
    const std::string& second = runs.models[pair.second].name;
    rows.push_back({first + " - " + second, Format("%+.5f", figures.value),
                    Shown("%+.5f", figures.rows), Shown("%+.5f", figures.delong),
                    Shown("%+.5f", figures.seeds), Shown("%+.5f", figures.both),
                    figures.holm ? Format("%.4f", *figures.holm) : "-",
                    Order(figures, larger_is_better, first, second),
                    figures.smallest ? Format("%.5f", *figures.smallest) : "-"});
  }
  return Table(rows);
}

// The shortest digits that are the number.
std::string Digits(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

std::string Ends(const std::optional<Interval>& interval) {
  return interval ? Digits(interval->low) + "," + Digits(interval->high) : ",";
}

std::string CsvLine(const std::string& metric, const std::string& first, const std::string& second,
                    const Uncertain& figures) {
  return metric + "," + QuotedCsvText(first) + "," + (second.empty() ? "" : QuotedCsvText(second)) +
         "," + Digits(figures.value) + "," + Ends(figures.rows) + "," + Ends(figures.delong) + "," +
         Ends(figures.seeds) + "," + Ends(figures.both) + "," +
         (figures.smallest ? Digits(*figures.smallest) : "") + "\n";
}

// The answer, before all tables.
std::string Answer(const ComparedRuns& runs, const Comparison& comparison) {
  const auto told = [&](const char* name, bool larger_is_better, const Uncertain ModelFigures::*own,
                        const Uncertain PairFigures::*of_pair) {
    ToldMetric metric = {.name = name,
                         .larger_is_better = larger_is_better,
                         .arms = {},
                         .means = {},
                         .comparison = {}};
    for (size_t i = 0; i < runs.models.size(); ++i) {
      metric.arms.push_back(runs.models[i].name);
      metric.means.push_back((comparison.models[i].*own).value);
    }
    for (const PairFigures& pair : comparison.pairs) {
      const Uncertain& figures = pair.*of_pair;
      metric.comparison.overall.push_back(
          {.first = pair.first,
           .second = pair.second,
           .level = {},
           .seeds = static_cast<int64_t>(
               std::min(runs.models[pair.first].runs.size(), runs.models[pair.second].runs.size())),
           .value = figures.value,
           .interval = figures.both,
           .p = figures.p,
           .holm = figures.holm});
    }
    return metric;
  };
  const ToldMetric auc = told("AUC", true, &ModelFigures::auc, &PairFigures::auc);
  const ToldMetric logloss = told("logloss", false, &ModelFigures::logloss, &PairFigures::logloss);
  std::string text = WhoIsAhead(auc);
  if (!text.empty()) text += "\n" + WhoIsAheadToo(auc, logloss) + "\n\n";
  return text;
}

}  // namespace

std::string ToMarkdown(const ComparedRuns& runs, const Comparison& comparison) {
  const auto positives = std::ranges::count(runs.labels, 1);
  std::string text = Answer(runs, comparison);
  text += Format("%zu rows of the %s split, %zu positives; intervals of 95 %%.\n\n",
                 runs.labels.size(), runs.split.c_str(), static_cast<size_t>(positives));
  text += ModelTable(runs, comparison);
  if (comparison.pairs.empty()) return text;
  text += "\nAUC, pair by pair:\n\n" + PairTable(runs, comparison, &PairFigures::auc, true);
  text +=
      "\nlogloss, pair by pair:\n\n" + PairTable(runs, comparison, &PairFigures::logloss, false);
  text += Format(
      "\nAn order is claimed where p, by the interval over both, rows and seeds, is at most 0.05 "
      "after "
      "Holm's correction\nfor %s; \"none, corrected\": the pair's own interval leaves 0 out. The "
      "smallest shown: a true\ndifference of this size is seen in 80 %% of such samples, without "
      "the correction.\n",
      CountText(static_cast<int64_t>(comparison.pairs.size()), "pair").c_str());
  return text;
}

std::string ToCsv(const ComparedRuns& runs, const Comparison& comparison) {
  std::string text =
      "metric,first,second,value,rows_low,rows_high,normal_low,normal_high,seeds_low,seeds_high,"
      "both_low,both_high,smallest\n";
  for (size_t i = 0; i < runs.models.size(); ++i) {
    text += CsvLine("auc", runs.models[i].name, "", comparison.models[i].auc);
    text += CsvLine("logloss", runs.models[i].name, "", comparison.models[i].logloss);
  }
  for (const PairFigures& pair : comparison.pairs) {
    const std::string& first = runs.models[pair.first].name;
    const std::string& second = runs.models[pair.second].name;
    text += CsvLine("auc", first, second, pair.auc);
    text += CsvLine("logloss", first, second, pair.logloss);
  }
  return text;
}

}  // namespace elastor
