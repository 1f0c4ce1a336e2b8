#include "launcher/spectra_report/projections.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>
#include <string_view>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/report/chart.h"
#include "core/report/csv.h"
#include "launcher/spectra_report/report.h"
#include "launcher/spectra_report/runs.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {
namespace {

constexpr char kHeader[] = "rank,label,rows,auc,logloss,gauc,bits_per_label";
constexpr size_t kDrawnMetrics[] = {0, 3};  // AUC, bits per label
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string FileOf(const std::string& folder) { return folder + "/" + kProjectionsFile; }

// All of `text`.
template <typename Number>
bool Parse(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// false: `text` is no line of such a file.
bool ParseLine(const std::string& text, ProjectionLine* line, ProjectionValues* values) {
  std::vector<std::string> cells;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    cells.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (cells.size() != 3 + values->size()) return false;
  line->label = cells[1];
  bool good = Parse(cells[0], &line->rank) && Parse(cells[2], &line->rows) && line->rank >= 0;
  for (size_t i = 0; i < values->size(); ++i) {
    (*values)[i] = kNone;
    if (cells[3 + i].empty()) continue;
    good = good && Parse(cells[3 + i], &(*values)[i]) && std::isfinite((*values)[i]);
  }
  return good;
}

// The line of the whole matrices with this label; lines.size(): there is none.
size_t WholeOf(std::span<const ProjectionLine> lines, const std::string& label) {
  const auto is_whole = [&](const ProjectionLine& line) {
    return line.rank == 0 && line.label == label;
  };
  return std::ranges::find_if(lines, is_whole) - lines.begin();
}

Status AddFolder(const std::string& folder, std::vector<ProjectedModel>* models) {
  ELASTOR_ASSIGN_OR_RETURN(const RunName name, ReadRunName(folder));
  ELASTOR_ASSIGN_OR_RETURN(const Summary summary, ReadFinishedRun(folder));
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(FileOf(folder)));
  ProjectedRun run = {.source = folder, .seed = name.seed, .values = {}};
  std::vector<ProjectionLine> lines;
  std::istringstream in(text);
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    if (++number == 1 && line == kHeader) continue;
    if (number == 1 || !ParseLine(line, &lines.emplace_back(), &run.values.emplace_back())) {
      return UserError(FileOf(folder) + ":" + std::to_string(number) + ": found '" + line +
                       "'; expected " +
                       (number == 1 ? kHeader : "numbers below " + std::string(kHeader)));
    }
  }
  const auto has_whole = [&](const ProjectionLine& line) {
    return WholeOf(lines, line.label) < lines.size();
  };
  if (lines.empty() || !std::ranges::all_of(lines, has_whole)) {
    return UserError(FileOf(folder) +
                     ": has no line of rank 0; expected that of the whole matrices");
  }
  auto model = std::ranges::find(*models, name.model, &ProjectedModel::name);
  if (model == models->end()) {
    model = models->insert(model, {name.model, summary.split, lines, {}});
  }
  const ProjectedRun& first = model->runs.empty() ? run : model->runs.front();
  if (lines != model->lines || summary.split != model->split) {
    return UserError(folder + " and " + first.source + ", both '" + model->name +
                     "': have other ranks, labels or rows");
  }
  for (const ProjectedRun& other : model->runs) {
    if (other.seed != run.seed) continue;
    return UserError(folder + " and " + other.source + ", both '" + model->name +
                     "': have the same seed, " + std::to_string(run.seed) +
                     "; expected another, or another name by --set=name=");
  }
  model->runs.push_back(std::move(run));
  return OkStatus();
}

// Averages a metric on one line over the seeds. The mean is NaN if a run has no value there.
SeedMean MetricOverSeeds(const ProjectedModel& model, size_t metric, size_t line) {
  std::vector<double> values;
  for (const ProjectedRun& run : model.runs) values.push_back(run.values[line][metric]);
  return MeanOverSeeds(values);
}

// The same less the whole matrices' metric, seed by seed.
SeedMean ChangeOverSeeds(const ProjectedModel& model, size_t metric, size_t line) {
  const size_t whole = WholeOf(model.lines, model.lines[line].label);
  std::vector<double> values;
  for (const ProjectedRun& run : model.runs) {
    values.push_back(run.values[line][metric] - run.values[whole][metric]);
  }
  return MeanOverSeeds(values);
}

// work(model, metric, line) for all that was measured, the lines of a label one after another.
template <typename Work>
void ForEachMean(std::span<const ProjectedModel> models, const Work& work) {
  for (const ProjectedModel& model : models) {
    for (size_t metric = 0; metric < kProjectionMetrics.size(); ++metric) {
      for (const ProjectionLine& whole : model.lines) {
        for (size_t line = 0; whole.rank == 0 && line < model.lines.size(); ++line) {
          if (model.lines[line].label != whole.label) continue;
          if (!std::isnan(MetricOverSeeds(model, metric, line).mean)) work(model, metric, line);
        }
      }
    }
  }
}

std::string Seeds(const ProjectedModel& model) { return CountText(model.runs.size(), "seed"); }

// "MODEL", or of several labels "MODEL, LABEL".
std::string SeriesName(const ProjectedModel& model, const std::string& label) {
  return model.name + (label.empty() ? "" : ", " + label);
}

std::string Csv(std::span<const ProjectedModel> models) {
  std::string text = "model,label,metric,rank,seeds,mean,low,high,change,change_low,change_high\n";
  ForEachMean(models, [&](const ProjectedModel& model, size_t metric, size_t line) {
    const SeedMean mean = MetricOverSeeds(model, metric, line);
    const SeedMean change = ChangeOverSeeds(model, metric, line);
    text += CsvText(model.name) + "," + CsvText(model.lines[line].label) + "," +
            kProjectionMetrics[metric] + "," + std::to_string(model.lines[line].rank) + "," +
            std::to_string(model.runs.size());
    for (const double number :
         {mean.mean, mean.low, mean.high, change.mean, change.low, change.high}) {
      text += "," + CsvNumber(number);
    }
    text += "\n";
  });
  return text;
}

LineChart Chart(std::span<const ProjectedModel> models, size_t drawn) {
  LineChart chart;
  chart.title = "Matrices of lower rank before the head";
  chart.subtitle = "Means over seeds with 95 % t-intervals.";
  chart.x.title = "rank of the matrices";
  chart.y.title = kProjectionMetrics[drawn];
  std::vector<int64_t> ranks;
  for (const ProjectedModel& model : models) {
    for (const ProjectionLine& line : model.lines) ranks.push_back(line.rank);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  ranks.erase(ranks.begin());  // 0, the whole matrices, which are those of the highest rank
  for (const int64_t rank : ranks) chart.x.categories.push_back(std::to_string(rank));
  ForEachMean(models, [&](const ProjectedModel& model, size_t metric, size_t line) {
    if (metric != drawn || model.lines[line].rank == 0) return;
    const std::string name = SeriesName(model, model.lines[line].label) + ", " + Seeds(model);
    auto series = std::ranges::find(chart.series, name, &ChartSeries::name);
    if (series == chart.series.end()) series = chart.series.insert(series, {name, {}});
    const SeedMean mean = MetricOverSeeds(model, metric, line);
    const auto place = std::ranges::find(ranks, model.lines[line].rank) - ranks.begin();
    series->points.push_back(
        {.x = static_cast<double>(place), .y = mean.mean, .low = mean.low, .high = mean.high});
  });
  return chart;
}

}  // namespace

StatusOr<bool> HoldsProjections(const std::string& folder) { return IsThere(FileOf(folder)); }

StatusOr<std::vector<ProjectedModel>> ReadProjections(std::span<const std::string> folders) {
  std::vector<ProjectedModel> models;
  for (const std::string& folder : folders) {
    ELASTOR_RETURN_IF_ERROR(AddFolder(folder, &models));
  }
  for (ProjectedModel& model : models) std::ranges::sort(model.runs, {}, &ProjectedRun::seed);
  return models;
}

std::string ToText(std::span<const ProjectedModel> models) {
  std::string text, heading;
  ForEachMean(models, [&](const ProjectedModel& model, size_t metric, size_t line) {
    const ProjectionLine& of = model.lines[line];
    const std::string begin = SeriesName(model, of.label) + ", " + kProjectionMetrics[metric] +
                              " over " + Seeds(model) + ", " + std::to_string(of.rows) +
                              " rows of the " + model.split +
                              " split; less that of the whole matrices\n";
    if (begin != heading) text += heading = begin;
    const auto interval = [&](const SeedMean& mean) {
      char numbers[96];
      std::snprintf(numbers, sizeof(numbers), "  %+9.5f", mean.mean);
      std::string text_of = numbers;
      if (model.runs.size() < 2) return text_of;
      std::snprintf(numbers, sizeof(numbers), " [%+9.5f, %+9.5f]", mean.low, mean.high);
      return text_of + numbers;
    };
    char rank[32];
    std::snprintf(rank, sizeof(rank), "  %8s",
                  of.rank == 0 ? "as it is" : std::to_string(of.rank).c_str());
    text += rank + interval(MetricOverSeeds(model, metric, line));
    if (of.rank > 0) text += interval(ChangeOverSeeds(model, metric, line));
    text += "\n";
  });
  return text;
}

NamedTexts ProjectionFiles(std::span<const ProjectedModel> models,
                           std::optional<ExportFormat> exported) {
  NamedTexts files = {{kProjectionsFile, Csv(models)}};
  for (const size_t metric : kDrawnMetrics) {
    const LineChart chart = Chart(models, metric);
    if (chart.series.empty()) continue;
    AddPicture("projections_" + std::string(kProjectionMetrics[metric]), chart, exported, &files);
  }
  return files;
}

}  // namespace elastor
