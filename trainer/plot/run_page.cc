#include "trainer/plot/run_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/html.h"
#include "trainer/records/record_json.h"
#include "trainer/records/run_files.h"

namespace elastor {
namespace {

constexpr size_t kMostRows = 500;  // of a table
constexpr size_t kDigestShown = 12;

constexpr const char* kNoSummary = "not finished";
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

Cell Measured(const std::optional<double>& value, int decimals = 5) {
  return NumberCell(value ? NumberText(*value, decimals) : "", value.value_or(kNoValue));
}

std::string Name(const RunHistory& run) { return run.name.empty() ? run.folder : run.name; }

// "2,346 steps, validation AUC 0.8000, logloss 0.4451"
std::string StateText(const RunHistory& run) {
  const std::string steps = NumberText(static_cast<double>(run.steps()), 0) + " steps";
  if (!run.summary) return std::string(kNoSummary) + ": " + steps + " so far";
  std::string text = steps;
  const MetricValues& metrics = run.summary->metrics;
  const std::string split = ", " + run.summary->split;
  if (metrics.auc) text += split + " AUC " + NumberText(*metrics.auc, 4);
  if (std::isfinite(metrics.logloss)) {
    text += (metrics.auc ? "," : split) + " logloss " + NumberText(metrics.logloss, 4);
  }
  return text;
}

std::string RunsTable(const std::vector<RunHistory>& runs) {
  std::vector<std::vector<Cell>> rows;
  for (const RunHistory& run : runs) {
    const EvalRecord last = run.evaluations.empty() ? EvalRecord() : run.evaluations.back();
    const Summary summary = run.summary.value_or(Summary());
    const auto steps = static_cast<double>(run.steps());
    const auto if_done = [&](auto value, int decimals) {
      return Measured(run.summary ? Finite(static_cast<double>(value)) : std::nullopt, decimals);
    };
    rows.push_back({{.text = Name(run), .title = run.folder},
                    {.text = run.summary ? "finished" : kNoSummary},
                    NumberCell(NumberText(steps, 0), steps),
                    {.text = last.split},
                    Measured(last.metrics.auc),
                    Measured(Finite(last.metrics.logloss)),
                    Measured(summary.best_metric),
                    Measured(summary.best_step, 0),
                    if_done(summary.dense_parameters, 0),
                    if_done(summary.embedding_parameters, 0),
                    if_done(summary.samples_per_s, 0),
                    if_done(summary.wall_s, 1),
                    {.text = summary.state_digest.substr(0, kDigestShown),
                     .title = summary.state_digest,
                     .code = true}});
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
  // Of a group its first run.
  std::vector<const RunHistory*> shown;
  std::set<std::string> groups;
  for (const RunHistory& run : runs) {
    if (run.group.empty() || groups.insert(run.group).second) shown.push_back(&run);
  }
  if (!groups.empty()) names.erase("training.seed");
  std::vector<Cell> headings = {Heading("field")};
  for (const RunHistory* run : shown) {
    headings.push_back(Heading(run->group.empty() ? Name(*run) : run->group));
  }
  std::vector<std::vector<Cell>> rows;
  for (const std::string& name : names) {
    std::vector<Cell> row = {{.text = name, .code = true}};
    std::set<std::string> values;
    for (const RunHistory* run : shown) {
      const auto field = run->fields.find(name);
      row.push_back({.text = field == run->fields.end() ? "" : field->second});
      values.insert(row.back().text);
    }
    if (values.size() > 1) rows.push_back(std::move(row));
  }
  if (rows.empty()) return Paragraph("The experiments are alike in every field.");
  return Table("Fields of the experiments that differ.", headings, rows, /*sortable=*/false);
}

// The cells of a table's fields that people are shown, behind those that are there.
template <typename Table, typename Record>
void AddMeasured(const Table& table, const Record& record, std::vector<Cell>* cells) {
  for (const auto& field : table) {
    if (field.title == nullptr) continue;
    cells->push_back(Measured(field.Number(record), field.is_integer() ? 0 : 5));
  }
}
template <typename Table>
void AddHeadings(const Table& table, std::vector<Cell>* headings) {
  for (const auto& field : table) {
    if (field.title != nullptr) headings->push_back(Heading(field.title, true));
  }
}

void AddEvaluationRow(const EvalRecord& at, const MetricValues& values, bool of_classes,
                      std::vector<std::vector<Cell>>* rows) {
  std::vector<Cell>& row = rows->emplace_back();
  const auto step = static_cast<double>(at.step);
  row = {NumberCell(NumberText(step, 0), step), {.text = at.split}, {.text = values.label}};
  AddMeasured(kBinaryFields, values, &row);
  AddMeasured(kGroupFields, values, &row);
  if (of_classes) AddMeasured(kClassFields, values, &row);
}

// The newest first.
std::string EvaluationsTable(const RunHistory& run) {
  const bool of_classes = std::ranges::any_of(
      run.evaluations, [](const EvalRecord& each) { return each.metrics.accuracy.has_value(); });
  std::vector<std::vector<Cell>> rows;
  for (size_t i = run.evaluations.size(); i-- > 0;) {
    const EvalRecord& record = run.evaluations[i];
    if (record.labels.empty()) AddEvaluationRow(record, record.metrics, of_classes, &rows);
    for (const MetricValues& label : record.labels) {
      AddEvaluationRow(record, label, of_classes, &rows);
    }
  }
  if (rows.empty()) return Paragraph("The run has not been evaluated yet.");
  std::string caption =
      "Every evaluation, the newest first. A click on a heading, or Enter, sorts.";
  if (rows.size() > kMostRows) {
    rows.resize(kMostRows);
    caption += StrCat(" Older ones are in ", kMetricsTableFile, ".");
  }
  std::vector<Cell> headings = {Heading("step", true), Heading("split"), Heading("label")};
  AddHeadings(kBinaryFields, &headings);
  AddHeadings(kGroupFields, &headings);
  if (of_classes) AddHeadings(kClassFields, &headings);
  return Table(caption, headings, rows, /*sortable=*/true);
}

// The slices of the last evaluation.
std::string SlicesTable(const RunHistory& run) {
  if (run.evaluations.empty() || run.evaluations.back().metrics.slices.empty()) return "";
  std::vector<std::vector<Cell>> rows;
  for (const SliceValues& slice : run.evaluations.back().metrics.slices) {
    if (rows.size() == kMostRows) break;
    std::vector<Cell>& row = rows.emplace_back();
    row = {{.text = slice.field},
           {.text = slice.value.empty() ? StrCat("id ", slice.id) : slice.value}};
    AddMeasured(kBinaryFields, slice, &row);
  }
  std::vector<Cell> headings = {Heading("field"), Heading("value")};
  AddHeadings(kBinaryFields, &headings);
  return Table("Slices of the last evaluation.", headings, rows, /*sortable=*/true);
}

// Seconds of the steps' phases on rank 0, over all records.
std::string PhasesTable(const RunHistory& run) {
  std::vector<std::pair<std::string, double>> phases;
  double total = 0;
  for (const TrainRecord& record : run.train) {
    for (const auto& [name, seconds] : record.phase_seconds) {
      auto phase = std::ranges::find(phases, name, &std::pair<std::string, double>::first);
      if (phase == phases.end()) phase = phases.insert(phase, {name, 0});
      phase->second += seconds;
      total += seconds;
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
  if (run.summary) {
    const Summary& summary = *run.summary;
    text += Definition("State digest", summary.state_digest) + Definition("Build", summary.build) +
            Definition("Numerics of the build", summary.numerics) +
            Definition("Instruction set of the kernels", summary.isa) +
            Definition("Ranks", StrCat(summary.ranks)) +
            Definition("Virtual shards", StrCat(summary.virtual_shards)) +
            Definition("Hash of the experiment", summary.numeric_hash) +
            Definition("Most memory of rank 0, bytes", StrCat(summary.peak_memory_bytes));
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
  Json json = {{"runs", Json::array()}};
  for (const RunHistory& run : runs) {
    json["runs"].push_back({{"name", Name(run)},
                            {"folder", run.folder},
                            {"summary", run.summary ? Json::parse(ToJson(*run.summary)) : Json()}});
  }
  return json.dump();
}

}  // namespace

std::string ToHtml(const std::vector<RunHistory>& runs, const RunPictures& figures) {
  const bool one = runs.size() == 1;
  const std::vector<std::string> groups = GroupsOf(runs);
  std::vector<std::string> titles = groups;
  if (groups.empty()) {
    for (const RunHistory& run : runs) titles.push_back(Name(run));
  }
  std::string title = titles[0];
  for (size_t i = 1; i < titles.size(); ++i) {
    title += (i + 1 == titles.size() ? " and " : ", ") + titles[i];
  }
  std::string ranks;
  for (const FigureGroup& group : figures.ranks) ranks += FiguresHtml(group);
  std::string tables = RunsTable(runs), provenance;
  if (one) {
    tables += EvaluationsTable(runs[0]) + SlicesTable(runs[0]) + PhasesTable(runs[0]);
  } else {
    tables += DifferencesTable(runs);
  }
  for (const RunHistory& run : runs) {
    provenance += one ? ProvenanceHtml(run)
                      : "<details><summary>" + Escaped(Name(run)) + "</summary>\n" +
                            ProvenanceHtml(run) + "</details>\n";
  }
  const std::string kicker = one ? "Elastor run" : "Elastor runs compared";
  std::string body =
      "<header>\n<p class=\"kicker\">" + kicker + "</p>\n<h1>" + Escaped(title) + "</h1>\n";
  if (!groups.empty()) {
    body += "<p class=\"state\">" +
            Escaped(StrCat(CountText(static_cast<int64_t>(runs.size()), "run"), " in ",
                           CountText(static_cast<int64_t>(groups.size()), "group"),
                           "; runs of a group differ in their seed alone.")) +
            "</p>\n";
  }
  for (const RunHistory& run : runs) {
    if (!groups.empty()) break;
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
