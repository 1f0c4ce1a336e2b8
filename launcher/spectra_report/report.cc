#include "launcher/spectra_report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/log.h"
#include "core/base/student_t.h"
#include "core/base/text.h"
#include "core/report/chart.h"
#include "core/report/csv.h"

namespace elastor {
namespace {

std::string Seeds(const SpectraModel& model) { return CountText(model.runs.size(), "seed"); }

std::string FileName(const std::string& model) {
  std::string name = model;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-') c = '_';
  }
  return name;
}

std::string StagesCsv(std::span<const SpectraModel> models) {
  std::string text =
      "model,step,kind,stage,seeds,mean,low,high,change,change_low,change_high,rising_seeds,"
      "falling_seeds\n";
  for (const SpectraModel& model : models) {
    for (const int64_t step : model.steps) {
      for (int kind = 0; kind < kRankKinds; ++kind) {
        for (size_t stage = 0; stage < model.stages.size(); ++stage) {
          const SeedMean rank = RankOverSeeds(model, kind, step, stage);
          text += CsvText(model.name) + "," + std::to_string(step) + "," + kRankNames[kind] + "," +
                  model.stages[stage] + "," + std::to_string(model.runs.size()) + "," +
                  CsvNumber(rank.mean) + "," + CsvNumber(rank.low) + "," + CsvNumber(rank.high);
          if (stage == 0) {
            text += ",,,,,\n";
            continue;
          }
          const SeedMean change = ChangeOverSeeds(model, kind, step, stage);
          text += "," + CsvNumber(change.mean) + "," + CsvNumber(change.low) + "," +
                  CsvNumber(change.high) + "," + std::to_string(change.positive) + "," +
                  std::to_string(change.negative) + "\n";
        }
      }
    }
  }
  return text;
}

std::string SlopesCsv(std::span<const SpectraModel> models) {
  std::string text = "model,step,kind,points,seeds,slope,low,high,rising_seeds,falling_seeds\n";
  for (const SpectraModel& model : models) {
    const size_t points = Trajectory(model.stages).size();
    if (points < 2) continue;
    for (const int64_t step : model.steps) {
      for (int kind = 0; kind < kRankKinds; ++kind) {
        const SeedMean slope = SlopeOverSeeds(model, kind, step);
        text += CsvText(model.name) + "," + std::to_string(step) + "," + kRankNames[kind] + "," +
                std::to_string(points) + "," + std::to_string(model.runs.size()) + "," +
                CsvNumber(slope.mean) + "," + CsvNumber(slope.low) + "," + CsvNumber(slope.high) +
                "," + std::to_string(slope.positive) + "," + std::to_string(slope.negative) + "\n";
      }
    }
  }
  return text;
}

std::string ScoringCsv(std::span<const SpectraModel> models) {
  std::string text = "model,step,kind,seeds,mean,low,high\n";
  for (const SpectraModel& model : models) {
    for (const int64_t step : model.steps) {
      for (int kind = 0; kind < kRankKinds; ++kind) {
        const std::optional<SeedMean> rank = ScoringOverSeeds(model, kind, step);
        if (!rank) continue;
        text += CsvText(model.name) + "," + std::to_string(step) + "," + kRankNames[kind] + "," +
                std::to_string(model.runs.size()) + "," + CsvNumber(rank->mean) + "," +
                CsvNumber(rank->low) + "," + CsvNumber(rank->high) + "\n";
      }
    }
  }
  return text;
}

ChartPoint PointOf(double x, const SeedMean& rank) {
  return {.x = x, .y = rank.mean, .low = rank.low, .high = rank.high};
}

// What pictures have in common.
LineChart RankChart(int kind) {
  LineChart chart;
  chart.y.title = "mean " + std::string(kRankNames[kind]) + " rank";
  return chart;
}

LineChart StagesChart(std::span<const SpectraModel> models, int kind, bool start) {
  LineChart chart = RankChart(kind);
  chart.title = "Mean " + std::string(kRankNames[kind]) + " rank, stage by stage, " +
                (start ? "at the first measurement" : "at the last measurement");
  chart.subtitle = "Means over seeds with 95 % t-intervals.";
  for (const SpectraModel& model : models) {
    const int64_t step = start ? model.steps.front() : model.steps.back();
    ChartSeries& series = chart.series.emplace_back();
    series.name = model.name + ", step " + std::to_string(step) + ", " + Seeds(model);
    std::vector<std::string>& categories = chart.x.categories;
    for (size_t stage = 0; stage < model.stages.size(); ++stage) {
      auto place = std::ranges::find(categories, model.stages[stage]);
      if (place == categories.end()) place = categories.insert(place, model.stages[stage]);
      series.points.push_back(PointOf(static_cast<double>(place - categories.begin()),
                                      RankOverSeeds(model, kind, step, stage)));
    }
  }
  return chart;
}

LineChart DriftChart(const SpectraModel& model, int kind) {
  LineChart chart = RankChart(kind);
  chart.title = model.name + ": mean " + kRankNames[kind] + " rank over training";
  chart.subtitle =
      Seeds(model) + ", " + model.rows + ". Bands are 95 % t-intervals over the seeds.";
  chart.x.title = "step";
  chart.interval = LineChart::Interval::kBand;
  for (size_t stage = 0; stage < model.stages.size(); ++stage) {
    ChartSeries& series = chart.series.emplace_back();
    series.name = model.stages[stage];
    for (const int64_t step : model.steps) {
      series.points.push_back(
          PointOf(static_cast<double>(step), RankOverSeeds(model, kind, step, stage)));
    }
  }
  return chart;
}

// "+0.1230 [ +0.1010,  +0.1450]  10 of 10 rise"; of one seed without the rest.
std::string ChangeText(const SeedMean& change, size_t seeds) {
  char line[128];
  std::snprintf(line, sizeof(line), "%+8.4f", change.mean);
  std::string text = line;
  if (seeds < 2) return text;
  const bool rises = change.mean > 0;
  std::snprintf(line, sizeof(line), " [%+8.4f, %+8.4f]  %3lld of %zu %s", change.low, change.high,
                static_cast<long long>(rises ? change.positive : change.negative), seeds,
                rises ? "rise" : "fall");
  return text + line;
}

}  // namespace

SeedMean MeanOverSeeds(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  SeedMean result;
  for (const double value : values) {
    result.mean += value / count;
    result.positive += value > 0 ? 1 : 0;
    result.negative += value < 0 ? 1 : 0;
  }
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double stddev = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  const double half = MeanHalfWidth(stddev, static_cast<int64_t>(values.size()));
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

SeedMean RankOverSeeds(const SpectraModel& model, int kind, int64_t step, size_t stage) {
  std::vector<double> values;
  for (const SpectraRun& run : model.runs) values.push_back(run.means[kind].at(step)[stage]);
  return MeanOverSeeds(values);
}

SeedMean ChangeOverSeeds(const SpectraModel& model, int kind, int64_t step, size_t stage) {
  std::vector<double> values;
  for (const SpectraRun& run : model.runs) {
    const StageMeans& means = run.means[kind].at(step);
    values.push_back(stage == 0 ? 0 : means[stage] - means[stage - 1]);
  }
  return MeanOverSeeds(values);
}

SeedMean SlopeOverSeeds(const SpectraModel& model, int kind, int64_t step) {
  const std::vector<size_t> stages = Trajectory(model.stages);
  CHECK_GE(stages.size(), 2u);
  const double center = static_cast<double>(stages.size() - 1) / 2;
  std::vector<double> slopes;
  for (const SpectraRun& run : model.runs) {
    double products = 0, squares = 0;
    for (size_t i = 0; i < stages.size(); ++i) {
      const double x = static_cast<double>(i) - center;
      products += x * run.means[kind].at(step)[stages[i]];
      squares += x * x;
    }
    slopes.push_back(products / squares);
  }
  return MeanOverSeeds(slopes);
}

std::optional<SeedMean> ScoringOverSeeds(const SpectraModel& model, int kind, int64_t step) {
  std::vector<double> values;
  for (const SpectraRun& run : model.runs) {
    const auto found = run.scoring[kind].find(step);
    if (found == run.scoring[kind].end()) return std::nullopt;
    values.push_back(found->second);
  }
  return MeanOverSeeds(values);
}

std::string ToText(std::span<const SpectraModel> models) {
  std::string text;
  for (const SpectraModel& model : models) {
    size_t width = 0;
    for (const std::string& stage : model.stages) width = std::max(width, stage.size());
    std::vector<int64_t> steps = {model.steps.front()};
    if (model.steps.size() > 1) steps.push_back(model.steps.back());
    for (const int64_t step : steps) {
      text += model.name + ", step " + std::to_string(step) + ", " + Seeds(model) + ", " +
              model.rows + "\n";
      for (int kind = 0; kind < kRankKinds; ++kind) {
        text += "  " + std::string(kRankNames[kind]) + " rank; change from the stage before, its " +
                "95 % interval over seeds, seeds of that sign\n";
        for (size_t stage = 0; stage < model.stages.size(); ++stage) {
          char line[160];
          std::snprintf(line, sizeof(line), "    %-*s %8.4f", static_cast<int>(width),
                        model.stages[stage].c_str(), RankOverSeeds(model, kind, step, stage).mean);
          text += line;
          if (stage > 0) {
            text += "  " + ChangeText(ChangeOverSeeds(model, kind, step, stage), model.runs.size());
          }
          text += "\n";
        }
        if (const auto scoring = ScoringOverSeeds(model, kind, step)) {
          char line[64];
          std::snprintf(line, sizeof(line), "    the head's scoring matrices  %.4f\n",
                        scoring->mean);
          text += line;
        }
        if (Trajectory(model.stages).size() < 2) continue;
        text += "    slope over " + std::to_string(Trajectory(model.stages).size()) +
                " blocks or iterations  " +
                ChangeText(SlopeOverSeeds(model, kind, step), model.runs.size()) + "\n";
      }
    }
  }
  return text;
}

NamedTexts ReportFiles(std::span<const SpectraModel> models, std::optional<ExportFormat> exported) {
  NamedTexts files = {{"stages.csv", StagesCsv(models)}, {"slopes.csv", SlopesCsv(models)}};
  const auto linear = [](const SpectraModel& model) {
    return ScoringOverSeeds(model, 0, model.steps.back()).has_value();
  };
  if (std::ranges::any_of(models, linear)) files.emplace_back("scoring.csv", ScoringCsv(models));
  const auto trained = [](const SpectraModel& model) { return model.steps.size() > 1; };
  for (int kind = 0; kind < kRankKinds; ++kind) {
    const std::string name = kRankNames[kind];
    AddPicture("stages_" + name, StagesChart(models, kind, /*start=*/false), exported, &files);
    if (std::ranges::any_of(models, trained)) {
      AddPicture("stages_start_" + name, StagesChart(models, kind, /*start=*/true), exported,
                 &files);
    }
    for (const SpectraModel& model : models) {
      if (!trained(model)) continue;
      AddPicture("drift_" + name + "_" + FileName(model.name), DriftChart(model, kind), exported,
                 &files);
    }
  }
  return files;
}

}  // namespace elastor
