#include "launcher/scaling_law/runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "core/base/file.h"
#include "core/base/text.h"
#include "launcher/scaling_law/hold_out.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/resolved_model.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {
namespace {

constexpr const char* kSizeNames[] = {"dense_parameters", "width",      "depth",
                                      "samples",          "train_rows", "multiply_adds"};
constexpr Metric kMetrics[] = {Metric::kLogloss, Metric::kAuc, Metric::kNormalizedEntropy};
constexpr int64_t kMostInteger = int64_t{1} << 53;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

template <typename Names>
std::string Joined(const Names& names, const char* between = ", ") {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : between) + std::string(name);
  return text;
}

std::string MetricNames() {
  std::vector<std::string> names;
  for (const Metric metric : kMetrics) names.push_back(MetricName(metric));
  return Joined(names);
}

std::string Shown(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", number);
  return text;
}

// The metric as a loss.
StatusOr<double> LossOf(Metric metric, double value) {
  ELASTOR_RETURN_IF_ERROR(CheckFinite(MetricName(metric), value));
  const double loss = metric == Metric::kAuc ? 1 - value : value;
  if (loss > 0) return loss;
  return UserError(std::string(MetricName(metric)) + ": found " + Shown(value) + "; expected a " +
                   (metric == Metric::kAuc ? "number below 1" : "positive number"));
}

// The normalised entropy of the last evaluation; not-a-number: it has none.
StatusOr<double> ReadNormalizedEntropy(const std::string& folder) {
  std::optional<EvalRecord> last;
  ELASTOR_RETURN_IF_ERROR(ReadRecords(folder, [&](const RunRecord& record) {
    if (const auto* found = std::get_if<EvalRecord>(&record.values)) last = *found;
    return OkStatus();
  }));
  if (last) return last->metrics.normalized_entropy.value_or(kNone);
  return UserError(StrCat(folder, "/", kMetricsFile,
                          ": found no evaluation; expected a line whose event is eval"));
}

struct FolderRun {
  RunFacts run;
  std::string rows;  // "13714 rows of the validation split"
};

// The metric of a finished run as a loss.
StatusOr<double> ReadLoss(const std::string& folder, const Summary& summary, Metric metric) {
  const char* file = kSummaryFile;
  double value =
      metric == Metric::kAuc ? summary.metrics.auc.value_or(kNone) : summary.metrics.logloss;
  if (metric == Metric::kNormalizedEntropy) {
    file = kMetricsFile;
    ELASTOR_ASSIGN_OR_RETURN(value, ReadNormalizedEntropy(folder));
  }
  const StatusOr<double> loss = LossOf(metric, value);
  if (loss.ok()) return loss;
  return UserError(StrCat(folder, "/", file, ": ", loss.status().message()));
}

StatusOr<FolderRun> ReadRunFolder(const std::string& folder, Metric metric) {
  FolderRun found;
  RunFacts& run = found.run;
  run.source = folder;
  ELASTOR_ASSIGN_OR_RETURN(const Summary summary, ReadFinishedRun(folder));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment experiment, ReadRunExperiment(folder));
  run.model = ModelName(experiment.model());
  run.seed = static_cast<int64_t>(experiment.training().seed());
  AddModelSizes(experiment.model(), &run.sizes);
  for (const auto& [name, count] : {std::pair{"dense_parameters", summary.dense_parameters},
                                    {"steps", summary.steps},
                                    {"rows", summary.rows}}) {
    if (count > 0) continue;
    return UserError(folder + "/" + kSummaryFile + ": " + name +
                     ": is missing or 0; expected a positive number");
  }
  run.sizes["dense_parameters"] = static_cast<double>(summary.dense_parameters);
  run.sizes["samples"] =
      static_cast<double>(summary.steps) * static_cast<double>(experiment.training().batch_size());
  found.rows = std::to_string(summary.rows) + " rows of the " + summary.split + " split";
  ELASTOR_ASSIGN_OR_RETURN(run.value, ReadLoss(folder, summary, metric));
  const StatusOr<std::unique_ptr<Dataset>> data = Dataset::Open(experiment.data().path());
  if (experiment.data().train_rows() > 0) {
    run.sizes["train_rows"] = static_cast<double>(experiment.data().train_rows());
  } else if (data.ok()) {
    run.sizes["train_rows"] = static_cast<double>((*data)->rows(Split::kTrain));
  }
  if (data.ok() && ValidateExperiment(experiment).ok()) {
    const StatusOr<ResolvedModel> model = ResolveModel(experiment, (*data)->info());
    if (model.ok()) run.sizes["multiply_adds"] = static_cast<double>(model->graph.multiply_adds());
  }
  return found;
}

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) {
    const size_t begin = cell.find_first_not_of(" \t\r");
    const size_t end = cell.find_last_not_of(" \t\r");
    cells.push_back(begin == cell.npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

Status CheckColumns(const std::vector<std::string>& columns, Metric metric) {
  std::set<std::string> known = {"model", "seed"};
  known.insert(std::begin(kSizeNames), std::end(kSizeNames));
  for (const Metric each : kMetrics) known.insert(MetricName(each));
  std::set<std::string> seen;
  for (const std::string& column : columns) {
    if (!known.contains(column)) {
      return UserError("column '" + column + "'; expected some of " + Joined(known));
    }
    if (!seen.insert(column).second) return UserError("column '" + column + "' stands twice");
  }
  if (!seen.contains(MetricName(metric))) {
    return UserError(std::string("no column '") + MetricName(metric) + "'; there are " +
                     Joined(columns) + "; expected --metric to name one of them");
  }
  return OkStatus();
}

StatusOr<double> Number(const std::string& column, const std::string& cell) {
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error == std::errc() && end == cell.data() + cell.size() && std::isfinite(number)) {
    return number;
  }
  return UserError(column + ": found '" + cell + "'; expected a finite number");
}

StatusOr<RunFacts> RunOfLine(const std::vector<std::string>& columns,
                             const std::vector<std::string>& cells, Metric metric, bool* has_seed) {
  if (cells.size() != columns.size()) {
    return UserError("found " + std::to_string(cells.size()) + " columns; expected " +
                     std::to_string(columns.size()));
  }
  RunFacts run;
  run.model = "points";
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == "model") {
      run.model = cells[i];
      continue;
    }
    const bool is_size = std::ranges::find(SizeNames(), columns[i]) != SizeNames().end();
    const bool is_seed = columns[i] == "seed";
    if (!is_size && !is_seed && columns[i] != MetricName(metric)) continue;
    ELASTOR_ASSIGN_OR_RETURN(const double number, Number(columns[i], cells[i]));
    if (is_seed) {
      *has_seed = true;
      if (number != std::floor(number) || std::abs(number) > static_cast<double>(kMostInteger)) {
        return UserError("seed: found '" + cells[i] + "'; expected an integer");
      }
      run.seed = static_cast<int64_t>(number);
    } else if (is_size) {
      if (number <= 0) {
        return UserError(columns[i] + ": found '" + cells[i] + "'; expected a positive number");
      }
      run.sizes[columns[i]] = number;
    } else {
      ELASTOR_ASSIGN_OR_RETURN(run.value, LossOf(metric, number));
    }
  }
  return run;
}

std::string SizesText(std::span<const std::string> names, const std::vector<double>& sizes) {
  std::string text;
  for (size_t k = 0; k < names.size(); ++k) {
    text += (k == 0 ? "" : ", ") + names[k] + " " + Shown(sizes[k]);
  }
  return text;
}

}  // namespace

const char* MetricName(Metric metric) {
  if (metric == Metric::kAuc) return "auc";
  return metric == Metric::kLogloss ? "logloss" : "normalized_entropy";
}

StatusOr<Metric> MetricOf(const std::string& name) {
  for (const Metric metric : kMetrics) {
    if (name == MetricName(metric)) return metric;
  }
  return UserError("--metric=" + name + ": expected one of " + MetricNames());
}

std::span<const char* const> SizeNames() { return kSizeNames; }

std::string ModelName(const ModelConfig& model) {
  const auto* const chosen = ChosenModel(model);
  return chosen == nullptr ? "rank_elastor" : chosen->name();
}

void AddModelSizes(const ModelConfig& model, std::map<std::string, double>* sizes) {
  if (model.has_mlp()) {
    const auto& hidden = model.mlp().hidden();
    if (hidden.empty() || std::ranges::count(hidden, hidden[0]) != hidden.size()) return;
    (*sizes)["width"] = hidden[0];
    (*sizes)["depth"] = hidden.size();
  } else if (model.has_rank_elastor() || model.has_rank_mixer()) {
    const TokenModelConfig& tokens =
        model.has_rank_mixer() ? model.rank_mixer() : model.rank_elastor();
    (*sizes)["width"] = tokens.token_width();
    (*sizes)["depth"] = tokens.blocks();
  }
}

Status EnoughToFit(const std::vector<Configuration>& configurations,
                   std::span<const std::string> names, bool single_seeds) {
  if (!EnoughFor(configurations)) {
    std::string found;
    for (size_t k = 0; k < names.size(); ++k) {
      std::set<double> sizes;
      for (const Configuration& each : configurations) sizes.insert(each.sizes[k]);
      found += (k == 0 ? "" : ", ") + std::to_string(sizes.size()) + " of " + names[k];
    }
    return UserError("found " + std::to_string(configurations.size()) +
                     " configurations, different sizes: " + found + "; expected " +
                     std::to_string(1 + 2 * names.size()) +
                     " configurations and 3 different sizes at least");
  }
  if (!single_seeds && !SeedSpread(configurations)) {
    return UserError(
        "found one seed of every size; expected two or more of some, to tell noise "
        "from law, or --delta= the relative noise to assume");
  }
  return OkStatus();
}

StatusOr<std::vector<RunFacts>> ReadRunFolders(std::span<const std::string> folders,
                                               Metric metric) {
  std::vector<RunFacts> runs;
  std::string rows;
  for (const std::string& folder : folders) {
    ELASTOR_ASSIGN_OR_RETURN(FolderRun found, ReadRunFolder(folder, metric));
    if (runs.empty()) rows = found.rows;
    if (found.rows != rows) {
      return UserError(folder + ": was evaluated on " + found.rows + "; expected " + rows +
                       ", as " + runs.front().source);
    }
    runs.push_back(std::move(found.run));
  }
  return runs;
}

StatusOr<std::vector<RunFacts>> ReadPoints(const std::string& path, Metric metric) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<RunFacts> runs;
  std::vector<std::string> columns;
  std::map<std::pair<std::string, std::map<std::string, double>>, int64_t> seeds;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = path + ":" + std::to_string(++number);
    const std::vector<std::string> cells = Cells(line);
    if (std::ranges::all_of(cells, &std::string::empty) || cells[0].starts_with("#")) continue;
    if (columns.empty()) {
      columns = cells;
      const Status status = CheckColumns(columns, metric);
      if (!status.ok()) return UserError(where + ": " + status.message());
      continue;
    }
    bool has_seed = false;
    StatusOr<RunFacts> run = RunOfLine(columns, cells, metric, &has_seed);
    if (!run.ok()) return UserError(where + ": " + run.status().message());
    run->source = where;
    if (!has_seed) run->seed = seeds[{run->model, run->sizes}]++;
    runs.push_back(std::move(*run));
  }
  if (runs.empty())
    return UserError(path + ": found no points; expected a line with columns' names, then points");
  return runs;
}

StatusOr<std::map<std::string, std::vector<Configuration>>> GroupRuns(
    std::span<const RunFacts> runs, std::span<const std::string> names, bool single_seeds) {
  std::map<std::string, std::map<std::vector<double>, Configuration>> grouped;
  std::map<std::tuple<std::string, std::vector<double>, int64_t>, std::string> sources;
  for (const RunFacts& run : runs) {
    std::vector<double> sizes;
    for (const std::string& name : names) {
      const auto size = run.sizes.find(name);
      if (size == run.sizes.end()) {
        std::vector<std::string> known;
        for (const auto& entry : run.sizes) known.push_back(entry.first);
        return UserError(run.source + ": its " + name + " is not known; known are " +
                         Joined(known));
      }
      sizes.push_back(size->second);
    }
    const auto [first, is_new] =
        sources.emplace(std::tuple(run.model, sizes, run.seed), run.source);
    if (!is_new) {
      return UserError(run.source + ": " + run.model + ", " + SizesText(names, sizes) + ", seed " +
                       std::to_string(run.seed) + " is " + first->second +
                       "'s too; expected each seed once, and runs that differ in nothing else");
    }
    Configuration& configuration = grouped[run.model][sizes];
    configuration.sizes = sizes;
    configuration.values.push_back(run.value);
  }
  std::map<std::string, std::vector<Configuration>> result;
  for (auto& [model, by_sizes] : grouped) {
    std::vector<Configuration>& configurations = result[model];
    for (auto& [sizes, configuration] : by_sizes) {
      // The order of the runs is no part of the result.
      std::ranges::sort(configuration.values);
      configurations.push_back(std::move(configuration));
    }
    const Status enough = EnoughToFit(configurations, names, single_seeds);
    if (!enough.ok()) return UserError(model + ": " + enough.message());
  }
  return result;
}

}  // namespace elastor
