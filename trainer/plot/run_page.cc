#include "trainer/plot/run_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/report/axis.h"
#include "core/report/html.h"

namespace elastor {
namespace {

constexpr size_t kMostRows = 500;  // of a table
constexpr size_t kDigestShown = 12;

constexpr const char* kNoSummary = "not finished";

Cell Measured(const RunRecord& record, const char* field, int decimals = 5) {
  const double value = NumberIn(record, field);
  return NumberCell(std::isfinite(value) ? NumberText(value, decimals) : "", value);
}

std::string Name(const RunHistory& run) { return run.name.empty() ? run.folder : run.name; }

// "2,346 steps, validation AUC 0.8000, logloss 0.4451"
std::string StateText(const RunHistory& run) {
  const std::string steps = NumberText(static_cast<double>(run.steps()), 0) + " steps";
  if (!run.summary) return std::string(kNoSummary) + ": " + steps + " so far";
  std::string text = steps;
  const double auc = NumberIn(*run.summary, "auc"), logloss = NumberIn(*run.summary, "logloss");
  const std::string split = ", " + TextIn(*run.summary, "split");
  if (std::isfinite(auc)) text += split + " AUC " + NumberText(auc, 4);
  if (std::isfinite(logloss)) {
    text += (std::isfinite(auc) ? "," : split) + " logloss " + NumberText(logloss, 4);
  }
  return text;
}

std::string RunsTable(const std::vector<RunHistory>& runs) {
  std::vector<std::vector<Cell>> rows;
  const RunRecord none = RunRecord::object();
  for (const RunHistory& run : runs) {
    const RunRecord& summary = run.summary ? *run.summary : none;
    const RunRecord& last = run.evaluations.empty() ? none : run.evaluations.back();
    const std::string digest = TextIn(summary, "state_digest");
    rows.push_back({{.text = Name(run), .title = run.folder},
                    {.text = run.summary ? "finished" : kNoSummary},
                    NumberCell(NumberText(static_cast<double>(run.steps()), 0),
                               static_cast<double>(run.steps())),
                    {.text = TextIn(last, "split")},
                    Measured(last, "auc"),
                    Measured(last, "logloss"),
                    Measured(summary, "best_metric"),
                    Measured(summary, "best_step", 0),
                    Measured(summary, "dense_parameters", 0),
                    Measured(summary, "embedding_parameters", 0),
                    Measured(summary, "samples_per_s", 0),
                    Measured(summary, "wall_s", 1),
                    {.text = digest.substr(0, kDigestShown), .title = digest, .code = true}});
  }
  return Table(
      "The last evaluation, the best scheduled one by the metric that the run follows, and what it "
      "took.",
      {Heading("run"), Heading("state"), Heading("steps", true), Heading("split"),
       Heading("AUC", true), Heading("logloss", true), Heading("best", true),
       Heading("at step", true), Heading("dense parameters", true), Heading("in embeddings", true),
       Heading("samples/s", true), Heading("seconds", true), Heading("digest")},
      rows, /*sortable=*/true);
}

// The fields of the experiments in which runs differ.
std::string DifferencesTable(const std::vector<RunHistory>& runs) {
  std::set<std::string> names;
  for (const RunHistory& run : runs) {
    for (const auto& [name, value] : run.fields) names.insert(name);
  }
  std::vector<Cell> headings = {Heading("field")};
  for (const RunHistory& run : runs) headings.push_back(Heading(Name(run)));
  std::vector<std::vector<Cell>> rows;
  for (const std::string& name : names) {
    std::vector<Cell> row = {{.text = name, .code = true}};
    std::set<std::string> values;
    for (const RunHistory& run : runs) {
      const auto field = run.fields.find(name);
      row.push_back({.text = field == run.fields.end() ? "" : field->second});
      values.insert(row.back().text);
    }
    if (values.size() > 1) rows.push_back(std::move(row));
  }
  if (rows.empty()) return Paragraph("The experiments are alike in every field.");
  return Table("Fields of the experiments that differ.", headings, rows, /*sortable=*/false);
}

void AddEvaluationRow(const RunRecord& at, const RunRecord& values,
                      std::vector<std::vector<Cell>>* rows) {
  rows->push_back({Measured(at, "step", 0),
                   {.text = TextIn(at, "split")},
                   {.text = TextIn(values, "label")},
                   Measured(values, "rows", 0),
                   Measured(values, "positives", 0),
                   Measured(values, "auc"),
                   Measured(values, "logloss"),
                   Measured(values, "normalized_entropy"),
                   Measured(values, "calibration"),
                   Measured(values, "gauc")});
}

// The newest first.
std::string EvaluationsTable(const RunHistory& run) {
  std::vector<std::vector<Cell>> rows;
  for (size_t i = run.evaluations.size(); i-- > 0;) {
    const RunRecord& record = run.evaluations[i];
    if (!record.contains("labels")) {
      AddEvaluationRow(record, record, &rows);
      continue;
    }
    for (const RunRecord& label : record["labels"]) AddEvaluationRow(record, label, &rows);
  }
  if (rows.empty()) return Paragraph("The run has not been evaluated yet.");
  std::string caption =
      "Every evaluation, the newest first. A click on a heading, or Enter, sorts.";
  if (rows.size() > kMostRows) {
    rows.resize(kMostRows);
    caption += " Older ones are in metrics.csv.";
  }
  return Table(
      caption,
      {Heading("step", true), Heading("split"), Heading("label"), Heading("rows", true),
       Heading("positives", true), Heading("AUC", true), Heading("logloss", true),
       Heading("normalised entropy", true), Heading("calibration", true), Heading("gAUC", true)},
      rows, /*sortable=*/true);
}

// The slices of the last evaluation.
std::string SlicesTable(const RunHistory& run) {
  if (run.evaluations.empty() || !run.evaluations.back().contains("slices")) return "";
  std::vector<std::vector<Cell>> rows;
  for (const RunRecord& slice : run.evaluations.back()["slices"]) {
    if (rows.size() == kMostRows) break;
    const std::string value = TextIn(slice, "value");
    rows.push_back({{.text = TextIn(slice, "field")},
                    {.text = value.empty() ? "id " + TextIn(slice, "id") : value},
                    Measured(slice, "rows", 0),
                    Measured(slice, "positives", 0),
                    Measured(slice, "auc"),
                    Measured(slice, "logloss"),
                    Measured(slice, "calibration")});
  }
  return Table(
      "Slices of the last evaluation.",
      {Heading("field"), Heading("value"), Heading("rows", true), Heading("positives", true),
       Heading("AUC", true), Heading("logloss", true), Heading("calibration", true)},
      rows, /*sortable=*/true);
}

// Seconds of the steps' phases on rank 0, over all records.
std::string PhasesTable(const RunHistory& run) {
  std::vector<std::pair<std::string, double>> phases;
  double total = 0;
  for (const RunRecord& record : run.train) {
    const auto seconds = record.find("phase_s");
    if (seconds == record.end() || !seconds->is_object()) continue;
    for (const auto& [name, value] : seconds->items()) {
      if (!value.is_number()) continue;
      auto phase = std::ranges::find(phases, name, &std::pair<std::string, double>::first);
      if (phase == phases.end()) phase = phases.insert(phase, {name, 0});
      phase->second += value.get<double>();
      total += value.get<double>();
    }
  }
  if (!(total > 0)) return "";
  std::vector<std::vector<Cell>> rows;
  for (const auto& [name, seconds] : phases) {
    rows.push_back({{.text = name},
                    NumberCell(NumberText(seconds, 2), seconds),
                    NumberCell(NumberText(100 * seconds / total, 1) + " %", seconds)});
  }
  return Table("Where the steps' time went, on rank 0.",
               {Heading("phase"), Heading("seconds", true), Heading("share", true)}, rows,
               /*sortable=*/true);
}

std::string ProvenanceHtml(const RunHistory& run) {
  std::string text = "<dl>\n" + Definition("Folder", run.folder) + Definition("Data set", run.data);
  constexpr std::pair<const char*, const char*> kEntries[] = {
      {"state_digest", "State digest"},
      {"numerics", "Numerics of the build"},
      {"isa", "Instruction set of the kernels"},
      {"ranks", "Ranks"},
      {"virtual_shards", "Virtual shards"},
      {"numeric_hash", "Hash of the experiment"},
      {"peak_memory_bytes", "Most memory of rank 0, bytes"}};
  for (const auto& [field, meaning] : kEntries) {
    if (run.summary) text += Definition(meaning, TextIn(*run.summary, field));
  }
  return text + "</dl>\n<details><summary>The experiment, with all its defaults</summary><pre>" +
         Escaped(run.experiment) + "</pre></details>\n";
}

std::string Section(const char* id, const char* title, const std::string& body) {
  if (body.empty()) return "";
  return "<section id=\"" + std::string(id) + "\">\n<h2>" + title + "</h2>\n" + body +
         "</section>\n";
}

std::string DataJson(const std::vector<RunHistory>& runs) {
  RunRecord json = {{"runs", RunRecord::array()}};
  for (const RunHistory& run : runs) {
    json["runs"].push_back({{"name", Name(run)},
                            {"folder", run.folder},
                            {"summary", run.summary ? *run.summary : RunRecord(nullptr)}});
  }
  return json.dump(-1, ' ', false, RunRecord::error_handler_t::replace);
}

}  // namespace

std::string ToHtml(const std::vector<RunHistory>& runs, const RunFigures& figures) {
  const bool one = runs.size() == 1;
  std::string title = Name(runs[0]);
  for (size_t i = 1; i < runs.size(); ++i)
    title += (i + 1 == runs.size() ? " and " : ", ") + Name(runs[i]);
  std::string ranks;
  for (const FigureGroup& group : figures.ranks) ranks += FiguresHtml(group);
  std::string tables = RunsTable(runs), provenance;
  if (one) {
    tables += EvaluationsTable(runs[0]) + SlicesTable(runs[0]) + PhasesTable(runs[0]);
  } else {
    tables += DifferencesTable(runs);
  }
  for (const RunHistory& run : runs) {
    provenance += (one ? "" : "<h3>" + Escaped(Name(run)) + "</h3>\n") + ProvenanceHtml(run);
  }
  const std::string kicker = one ? "Elastor run" : "Elastor runs compared";
  std::string body =
      "<header>\n<p class=\"kicker\">" + kicker + "</p>\n<h1>" + Escaped(title) + "</h1>\n";
  for (const RunHistory& run : runs) {
    body +=
        "<p class=\"state\">" + Escaped((one ? "" : Name(run) + ": ") + StateText(run)) + ".</p>\n";
  }
  body +=
      "<nav aria-label=\"Sections\"><a href=\"#quality\">Quality</a> <a "
      "href=\"#course\">Training</a> " +
      std::string(ranks.empty() ? "" : "<a href=\"#ranks\">Effective ranks</a> ") +
      "<a href=\"#tables\">Tables</a> <a href=\"#provenance\">Provenance</a></nav>\n</header>\n";
  body += Section("quality", "Quality", FiguresHtml(figures.quality));
  body += Section("course", "Training", FiguresHtml(figures.course));
  body += Section("ranks", "Effective ranks", ranks);
  body += Section("tables", "Tables", tables);
  body += Section("provenance", "Provenance", provenance);
  return Page(title + " \u2013 " + kicker, body, DataJson(runs));
}

}  // namespace elastor
