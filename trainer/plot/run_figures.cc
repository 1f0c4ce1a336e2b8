#include "trainer/plot/run_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/student_t.h"
#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/chart.h"

namespace elastor {
namespace {

constexpr size_t kMostPoints = 160;  // of a curve; more are drawn together
constexpr const char* kKinds[] = {"stable", "entropy"};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// The two curves that share a picture of one run.
constexpr std::string_view kLoss = "loss", kLogloss = "logloss";
constexpr std::string_view kCalibration = "calibration";  // right where it is 1

// Replaces neighbouring points by their mean, with the least and the largest value as the interval.
std::vector<ChartPoint> Thinned(const std::vector<ChartPoint>& points) {
  const size_t together = (points.size() + kMostPoints - 1) / kMostPoints;
  if (together < 2) return points;
  std::vector<ChartPoint> thinned;
  for (size_t begin = 0; begin < points.size(); begin += together) {
    const size_t end = std::min(begin + together, points.size());
    ChartPoint mean = {.x = 0, .y = 0, .low = points[begin].y, .high = points[begin].y};
    double low = 0, high = 0;  // means of the points' own intervals
    for (size_t i = begin; i < end; ++i) {
      const auto count = static_cast<double>(end - begin);
      mean.x += points[i].x / count;
      mean.y += points[i].y / count;
      low += points[i].low / count;
      high += points[i].high / count;
      mean.low = std::min(mean.low, points[i].y);
      mean.high = std::max(mean.high, points[i].y);
    }
    if (std::isfinite(low) && std::isfinite(high)) {
      mean.low = low;
      mean.high = high;
    }
    thinned.push_back(mean);
  }
  return thinned;
}

// Puts a running mean in the place of a curve of many records, over a twentieth of them, and the
// records behind it.
void Smooth(ChartSeries* series) {
  constexpr size_t kLeast = 20, kShare = 20, kMostRaw = 800;
  const std::vector<ChartPoint> points = series->points;
  if (points.size() < kLeast) return;
  const size_t half = std::max<size_t>(points.size() / kShare / 2, 1);
  std::vector<double> sums = {0};
  for (const ChartPoint& point : points) sums.push_back(sums.back() + point.y);
  for (size_t i = 0; i < points.size(); ++i) {
    // As many on either side, so that a slope stays where it is.
    const size_t reach = std::min({half, i, points.size() - 1 - i});
    series->points[i].y =
        (sums[i + reach + 1] - sums[i - reach]) / static_cast<double>(2 * reach + 1);
  }
  const size_t stride = (points.size() + kMostRaw - 1) / kMostRaw;
  for (size_t i = 0; i < points.size(); i += stride) series->raw.push_back(points[i]);
  std::vector<ChartPoint> drawn;
  const size_t step = (points.size() + kMostPoints - 1) / kMostPoints;
  for (size_t i = 0; i < points.size(); i += step) drawn.push_back(series->points[i]);
  if ((points.size() - 1) % step != 0) drawn.push_back(series->points.back());
  series->points = std::move(drawn);
}

// Joins the curves of runs that differ in their seed alone: their mean at every x that two or more
// of them have, with its 95 % interval over the seeds by Student's t.
void JoinSeeds(const std::vector<RunHistory>& runs, std::vector<ChartSeries>* curves) {
  if (GroupsOf(runs).empty()) return;
  std::map<std::string, std::map<double, std::vector<double>>> by_group;
  std::map<std::string, int> sizes;
  std::vector<std::string> order;
  for (const ChartSeries& curve : *curves) {
    const auto run = std::ranges::find(runs, curve.name, &RunHistory::name);
    if (run == runs.end()) continue;
    if (sizes[run->group]++ == 0) order.push_back(run->group);
    for (const ChartPoint& point : curve.points) {
      if (std::isfinite(point.y)) by_group[run->group][point.x].push_back(point.y);
    }
  }
  curves->clear();
  for (const std::string& group : order) {
    ChartSeries& joined = curves->emplace_back();
    joined.name = sizes[group] > 1 ? StrCat(group, " (", sizes[group], " seeds)") : group;
    for (const auto& [x, values] : by_group[group]) {
      const auto count = static_cast<int64_t>(values.size());
      if (count < std::min(2, sizes[group])) continue;
      double mean = 0, squares = 0;
      for (const double value : values) mean += value / static_cast<double>(count);
      for (const double value : values) squares += (value - mean) * (value - mean);
      ChartPoint point = {.x = x, .y = mean};
      if (count > 1) {
        const double half =
            MeanHalfWidth(std::sqrt(squares / static_cast<double>(count - 1)), count);
        point.low = mean - half;
        point.high = mean + half;
      }
      joined.points.push_back(point);
    }
  }
}

std::string FileName(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  return name;
}

// One to stand beside another.
LineChart HalfChart(const std::string& title, const std::string& y_title) {
  LineChart chart;
  chart.title = title;
  chart.y.title = y_title;
  chart.half = true;
  return chart;
}

// Whether a linear axis would show the largest values alone, as of gradient norms.
bool SpansDecades(const std::vector<ChartSeries>& series) {
  constexpr double kDecades = 1000;
  double least = HUGE_VAL, most = 0;
  for (const ChartSeries& each : series) {
    for (const auto* points : {&each.points, &each.raw}) {
      for (const ChartPoint& point : *points) {
        if (!std::isfinite(point.y)) continue;
        least = std::min(least, point.y);
        most = std::max(most, point.y);
      }
    }
  }
  return least > 0 && most > kDecades * least;
}

// Over the steps; not drawn when no series has a number.
void AddCurves(const std::string& name, const std::string& title, const std::string& y_title,
               std::vector<ChartSeries> series, FigureGroup* group, double level = kNone) {
  std::erase_if(series, [](const ChartSeries& each) {
    return std::ranges::none_of(each.points,
                                [](const ChartPoint& point) { return std::isfinite(point.y); });
  });
  if (series.empty()) return;
  LineChart chart = HalfChart(title, y_title);
  chart.x = {.title = "step", .prefixes = true};
  chart.y.logarithmic = SpansDecades(series);
  chart.series = std::move(series);
  chart.interval = LineChart::Interval::kBand;
  chart.level = level;
  group->figures.push_back(MakeFigure(name, chart));
}

std::vector<ChartSeries> TrainingCurves(const std::vector<RunHistory>& runs,
                                        const RecordField<TrainRecord>& field) {
  std::vector<ChartSeries> all;
  for (const RunHistory& run : runs) {
    ChartSeries series = {runs.size() == 1 ? "training" : run.name, {}};
    for (const TrainRecord& record : run.train) {
      series.points.push_back(
          {.x = static_cast<double>(record.step), .y = field.Number(record).value_or(kNone)});
    }
    all.push_back(std::move(series));
  }
  JoinSeeds(runs, &all);
  for (ChartSeries& series : all) {
    // A mean over seeds has a band already.
    if (field.name == kLoss && GroupsOf(runs).empty()) {
      Smooth(&series);
    } else {
      series.points = Thinned(series.points);
    }
  }
  if (!field.picture.unless_zero) return all;
  std::erase_if(all, [](const ChartSeries& series) {
    return std::ranges::all_of(series.points, [](const ChartPoint& point) { return point.y == 0; });
  });
  return all;
}

// The rows of a run's keyed tables together. A step's records may be of some tables alone; the
// others have what they had.
std::vector<ChartSeries> TableCurves(const std::vector<RunHistory>& runs) {
  std::vector<ChartSeries> all;
  for (const RunHistory& run : runs) {
    ChartSeries series = {runs.size() == 1 ? "all tables" : run.name, {}};
    std::map<std::string, int64_t> rows;
    for (size_t i = 0; i < run.tables.size(); ++i) {
      rows[run.tables[i].table] = run.tables[i].rows;
      if (i + 1 < run.tables.size() && run.tables[i + 1].step == run.tables[i].step) continue;
      int64_t sum = 0;
      for (const auto& [table, of_table] : rows) sum += of_table;
      series.points.push_back(
          {.x = static_cast<double>(run.tables[i].step), .y = static_cast<double>(sum)});
    }
    series.points = Thinned(series.points);
    all.push_back(std::move(series));
  }
  return all;
}

// A metric of the evaluations: of one run for every split and label, training rows as well, of
// several for the validation split and the label that the monitor follows.
template <typename Record>
std::vector<ChartSeries> EvaluationCurves(const std::vector<RunHistory>& runs,
                                          const RecordField<Record>& field) {
  std::vector<ChartSeries> all;
  const auto add = [&](const std::string& name, int64_t step, const MetricValues& values) {
    auto series = std::ranges::find(all, name, &ChartSeries::name);
    if (series == all.end()) series = all.insert(series, {name, {}});
    series->points.push_back(
        {.x = static_cast<double>(step), .y = field.Number(values).value_or(kNone)});
  };
  const auto add_all = [&](const std::vector<EvalRecord>& evaluations, const std::string& rows) {
    for (const EvalRecord& record : evaluations) {
      const std::string name = rows.empty() ? record.split : rows;
      if (record.labels.empty()) add(name, record.step, record.metrics);
      for (const MetricValues& label : record.labels) {
        add(name + " " + label.label, record.step, label);
      }
    }
  };
  if (runs.size() == 1) {
    add_all(runs[0].evaluations, "");
    add_all(runs[0].training_evaluations, "training rows");
    return all;
  }
  for (const RunHistory& run : runs) {
    for (const EvalRecord& record : run.evaluations) {
      if (record.split == "validation") add(run.name, record.step, record.metrics);
    }
  }
  JoinSeeds(runs, &all);
  return all;
}

FigureGroup QualityFigures(const std::vector<RunHistory>& runs) {
  FigureGroup group;
  group.caption =
      "Loss of training: mean cross-entropy of a step's batch; the line is a running mean over a "
      "twentieth of the records, which stand behind it. Where another curve has more than " +
      std::to_string(kMostPoints) +
      " records, neighbouring ones are drawn as their mean, and the band reaches from the least "
      "to the largest of them.";
  if (!GroupsOf(runs).empty()) {
    group.caption +=
        " Runs that differ in their seed alone are one curve, their mean, with a band: its 95 % "
        "interval over the seeds (Student's), of neighbouring records the mean of the bands.";
  }
  const std::string split = runs.size() == 1 ? "" : ", validation";
  FigureGroup metrics;
  std::vector<ChartSeries> logloss;
  const auto draw = [&](const auto& table) {
    for (const auto& field : table) {
      if (field.picture.title == nullptr) continue;
      std::vector<ChartSeries> curves = EvaluationCurves(runs, field);
      if (field.name == kLogloss) logloss = curves;
      AddCurves(field.name, field.picture.title + split, field.picture.y_title, std::move(curves),
                &metrics, field.name == kCalibration ? 1 : kNone);
    }
  };
  draw(kBinaryFields);
  draw(kGroupFields);
  draw(kClassFields);
  for (const auto& field : kTrainFields) {
    if (field.name != kLoss) continue;
    std::vector<ChartSeries> loss = TrainingCurves(runs, field);
    // One run's own measurements beside it show when it learns by heart.
    if (runs.size() == 1) loss.insert(loss.end(), logloss.begin(), logloss.end());
    AddCurves(field.name, field.picture.title, field.picture.y_title, std::move(loss), &group);
  }
  group.figures.insert(group.figures.end(), metrics.figures.begin(), metrics.figures.end());
  return group;
}

FigureGroup CourseFigures(const std::vector<RunHistory>& runs) {
  FigureGroup group;
  group.caption =
      "The gradient's norm is that before clipping; samples a second are over all ranks and time "
      "inside steps.";
  for (const auto& field : kTrainFields) {
    if (field.picture.title == nullptr || field.name == kLoss) continue;
    AddCurves(field.name, field.picture.title, field.picture.y_title, TrainingCurves(runs, field),
              &group);
  }
  AddCurves("table_rows", "Rows of keyed tables", "rows", TableCurves(runs), &group);
  return group;
}

const RankRecord& RankOf(const SpectrumRecord& record, const std::string& kind) {
  return kind == kKinds[0] ? record.stable : record.entropy;
}

std::string MeasurementText(const std::vector<SpectrumRecord>& measurement) {
  const SpectrumRecord& first = measurement[0];
  return StrCat("step ", first.step, ", ", first.samples, " rows of the ", first.split, " split");
}

// A run's mean ranks over the steps, a line a stage.
void AddDrift(const RunHistory& run, const std::string& kind, const std::string& suffix,
              FigureGroup* group) {
  std::vector<ChartSeries> stages;
  for (const std::vector<SpectrumRecord>& measurement : run.spectra) {
    for (const SpectrumRecord& record : measurement) {
      auto series = std::ranges::find(stages, record.stage, &ChartSeries::name);
      if (series == stages.end()) series = stages.insert(series, {record.stage, {}});
      series->points.push_back(
          {.x = static_cast<double>(record.step), .y = RankOf(record, kind).mean});
    }
  }
  AddCurves(kind + "_rank" + suffix, "Mean " + kind + " rank by stage", kind + " rank", stages,
            group);
}

// No line leads across a category that the series lacks.
void BreakAtMissing(size_t categories, ChartSeries* series) {
  for (size_t c = 0; c < categories; ++c) {
    const auto x = static_cast<double>(c);
    if (std::ranges::find(series->points, x, &ChartPoint::x) != series->points.end()) continue;
    series->points.push_back({.x = x, .y = kNone});
  }
  std::ranges::stable_sort(series->points, {}, &ChartPoint::x);
}

// Means at the last measurement, stage by stage, a line a run.
void AddStages(const std::vector<RunHistory>& runs, const std::string& kind, FigureGroup* group) {
  // Matrices of other sizes can have other ranks: then shares of what is possible are compared.
  std::set<int64_t> most;
  for (const RunHistory& run : runs) {
    if (run.spectra.empty()) continue;
    for (const SpectrumRecord& record : run.spectra.back()) most.insert(record.max_rank);
  }
  const bool shares = most.size() > 1 && *most.begin() > 0;
  LineChart chart = HalfChart("Mean " + kind + " rank by stage",
                              kind + " rank" + (shares ? ", share of the largest possible" : ""));
  chart.subtitle = "At each run's last measurement.";
  chart.interval = LineChart::Interval::kBand;
  for (const RunHistory& run : runs) {
    if (run.spectra.empty()) continue;
    ChartSeries& series = chart.series.emplace_back();
    series.name = run.name;
    for (const SpectrumRecord& record : run.spectra.back()) {
      std::vector<std::string>& stages = chart.x.categories;
      auto place = std::ranges::find(stages, record.stage);
      if (place == stages.end()) place = stages.insert(place, record.stage);
      series.points.push_back(
          {.x = static_cast<double>(place - stages.begin()),
           .y = RankOf(record, kind).mean / (shares ? static_cast<double>(record.max_rank) : 1)});
    }
  }
  JoinSeeds(runs, &chart.series);
  for (ChartSeries& series : chart.series) BreakAtMissing(chart.x.categories.size(), &series);
  if (!chart.series.empty()) group->figures.push_back(MakeFigure(kind + "_rank", chart));
}

ChartSeries ProfileOf(const std::string& name, const SpectrumRecord& record) {
  ChartSeries series = {name, {}};
  for (const double value : record.profile) {
    series.points.push_back({.x = static_cast<double>(series.points.size() + 1), .y = value});
  }
  return series;
}

// The mean singular values: of one run by stage, of several after their last stages.
void AddProfiles(const std::vector<RunHistory>& runs, FigureGroup* group) {
  LineChart chart = HalfChart("Singular values", "mean of \u03c3\u1d62 / \u03c3\u2081");
  chart.x.title = "i";
  chart.y.logarithmic = true;
  for (const RunHistory& run : runs) {
    if (run.spectra.empty()) continue;
    const std::vector<SpectrumRecord>& last = run.spectra.back();
    if (runs.size() > 1) {
      chart.subtitle = "After the last stage.";
      chart.series.push_back(ProfileOf(run.name, last.back()));
      continue;
    }
    for (const SpectrumRecord& record : last) {
      chart.series.push_back(ProfileOf(record.stage, record));
    }
  }
  if (runs.size() > 1) JoinSeeds(runs, &chart.series);
  if (!chart.series.empty()) group->figures.push_back(MakeFigure("singular_values", chart));
}

void AddDistributions(const std::vector<SpectrumRecord>& measurement, const std::string& kind,
                      const std::string& suffix, FigureGroup* group) {
  DistributionChart chart;
  chart.title = "Distribution of the " + kind + " rank, stage by stage";
  chart.subtitle =
      MeasurementText(measurement) + ". Each is scaled to its own peak; dashed, the stage before.";
  chart.x_title = kind + " rank of a row";
  for (const SpectrumRecord& record : measurement) {
    Distribution& distribution = chart.distributions.emplace_back();
    distribution.name = record.stage;
    distribution.upper = static_cast<double>(record.max_rank);
    distribution.mean = RankOf(record, kind).mean;
    distribution.histogram = RankOf(record, kind).histogram;
    if (distribution.histogram.empty() || !(distribution.upper > 0)) return;
  }
  group->figures.push_back(MakeFigure("distribution_" + kind + suffix, chart));
}

std::vector<FigureGroup> RankFigures(const std::vector<RunHistory>& runs) {
  std::vector<FigureGroup> groups;
  FigureGroup& means = groups.emplace_back();
  means.caption =
      "Means over the measured rows. \u03c3\u2081 is the largest singular value of a row's "
      "representation, a matrix of tokens.";
  const bool one = runs.size() == 1;
  for (const char* kind : kKinds) {
    one ? AddDrift(runs[0], kind, "", &means) : AddStages(runs, kind, &means);
  }
  AddProfiles(runs, &means);
  // Those of single runs are in the runs' own reports.
  if (!GroupsOf(runs).empty()) return groups;
  for (const RunHistory& run : runs) {
    if (run.spectra.empty()) continue;
    const std::string suffix = one ? "" : "_" + FileName(run.name);
    const std::string of_run = one ? "" : " of " + run.name;
    if (!one && run.spectra.size() > 1) {
      FigureGroup& drift = groups.emplace_back();
      drift.heading = "Ranks over training" + of_run;
      drift.folded = true;
      for (const char* kind : kKinds) AddDrift(run, kind, suffix, &drift);
    }
    for (const bool start : {false, true}) {
      if (start && run.spectra.size() == 1) continue;
      FigureGroup& group = groups.emplace_back();
      group.heading = "Distributions" + of_run +
                      (start ? " at the first measurement" : " at the last measurement");
      group.folded = start || !one;
      group.wide = true;
      for (const char* kind : kKinds) {
        AddDistributions(start ? run.spectra.front() : run.spectra.back(), kind,
                         suffix + (start ? "_start" : ""), &group);
      }
    }
  }
  return groups;
}

}  // namespace

RunPictures MakeFigures(const std::vector<RunHistory>& runs) {
  return {QualityFigures(runs), CourseFigures(runs), RankFigures(runs)};
}

}  // namespace elastor
