#include "launcher/sweep_report/figures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/student_t.h"
#include "core/base/text.h"
#include "core/report/axis.h"

namespace elastor {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kCurvePoints = 48;
// Beyond these a picture would be large and say no more.
constexpr size_t kMostPoints = 120;        // of a series
constexpr size_t kMostRuns = 400;          // faint dots of a series
constexpr size_t kMostCloudPoints = 1000;  // of an arm
// A training step's multiply-adds over those of its forward pass.
constexpr double kTrainingPasses = 3;

std::string FileName(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  return name;
}

std::string ValueText(Metric metric, double value) {
  return std::string(ShownName(metric)) + Format(" %.5f", value);
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ChartPoint ShownPoint(Metric metric, double x, double loss, const Interval& interval) {
  ChartPoint point = {x, Shown(metric, loss), Shown(metric, interval.low),
                      Shown(metric, interval.high)};
  if (point.low > point.high) std::swap(point.low, point.high);
  return point;
}

// Every so many, so that at most `most` are left.
template <typename T>
void Thin(size_t most, std::vector<T>* items) {
  const size_t stride = (items->size() + most - 1) / std::max<size_t>(most, 1);
  if (stride < 2) return;
  std::vector<T> kept;
  for (size_t i = 0; i < items->size(); i += stride) kept.push_back(std::move((*items)[i]));
  *items = std::move(kept);
}

// The law along its first size, from the least to beyond the largest, the others as in `sizes`.
void AddCurve(const SeriesLaw& law, Metric metric, std::vector<double> sizes,
              ScalingSeries* series) {
  const Analysis& analysis = *law.analysis;
  double least = HUGE_VAL, most = 0;
  for (const Configuration& configuration : law.configurations) {
    least = std::min(least, configuration.sizes[0]);
    most = std::max(most, configuration.sizes[0]);
  }
  // A law that is not identified says nothing of what lies beyond its data.
  const double end =
      analysis.identification.identified() ? analysis.predictions.back().sizes[0] : most;
  series->fitted_until = most;
  const auto add = [&](double size) {
    sizes[0] = size;
    series->curve.push_back(ShownPoint(
        metric, size, analysis.fit.law.At(sizes),
        analysis.bootstrap.Of([&sizes](const Law& replicate) { return replicate.At(sizes); })));
  };
  for (int i = 0; i < kCurvePoints; ++i) {
    add(least * std::pow(most / least, i / (kCurvePoints - 1.0)));
  }
  for (int i = 1; end > most && i <= kCurvePoints / 2; ++i) {
    add(most * std::pow(end / most, i / (kCurvePoints / 2.0)));
  }
}

ScalingPoint PointOf(const SeriesLaw& law, const Configuration& configuration, Metric metric,
                     const std::string& size) {
  ScalingPoint point = {.mean = MeanPoint(law, configuration, metric)};
  for (const double value : configuration.values) point.runs.push_back(Shown(metric, value));
  const double x = point.mean.x;
  point.tip = law.series + ", " + PrefixedNumber(x, 4) + " " + SizeTitle(size) + ": " +
              ValueText(metric, point.mean.y);
  if (std::isfinite(point.mean.low)) {
    point.tip += Format(" [%.5f, %.5f]", point.mean.low, point.mean.high);
  }
  point.tip += Format(", %zu seed%s", point.runs.size(), point.runs.size() == 1 ? "" : "s");
  if (!law.analysis) return point;
  point.fitted = Shown(metric, law.analysis->fit.law.At(configuration.sizes));
  if (const HeldOut* held = HeldOutOf(law, configuration)) {
    point.held_out = ShownPoint(metric, x, held->predicted, held->interval);
    point.tip += "; predicted by the smaller sizes " + Format("%.5f", point.held_out.y) +
                 Format(" [%.5f, %.5f]", point.held_out.low, point.held_out.high);
  }
  return point;
}

ChartAxis SizeAxis(const std::string& size) {
  return {.title = SizeTitle(size), .logarithmic = true, .prefixes = true};
}
ChartAxis MetricAxis(Metric metric) {
  return {.title = ShownName(metric) + std::string(metric == Metric::kAuc ? " (higher is better)"
                                                                          : " (lower is better)")};
}

void FinishSeries(ScalingSeries* series) {
  Thin(kMostPoints, &series->points);
  size_t runs = 0;
  for (const ScalingPoint& point : series->points) runs += point.runs.size();
  for (ScalingPoint& point : series->points) {
    if (runs > kMostRuns || point.runs.size() < 2) point.runs.clear();
  }
}

std::string TitleOf(const SweepLaw& law) {
  std::string title = ShownName(law.metric);
  title[0] = static_cast<char>(std::toupper(title[0]));
  return title + " against " + SizeTitle(law.sizes[0]);
}

Figure SingleFigure(const SweepLaw& law) {
  ScalingChart chart;
  chart.title = TitleOf(law);
  chart.x = SizeAxis(law.sizes[0]);
  chart.y = MetricAxis(law.metric);
  for (const SeriesLaw& of_series : law.series) {
    ScalingSeries& series = chart.series.emplace_back();
    series.name = of_series.series;
    for (const Configuration& configuration : of_series.configurations) {
      series.points.push_back(PointOf(of_series, configuration, law.metric, law.sizes[0]));
    }
    if (of_series.analysis) AddCurve(of_series, law.metric, {0}, &series);
    FinishSeries(&series);
  }
  return MakeFigure(FileName(StrCat(MetricName(law.metric), "_by_", law.sizes[0])), chart);
}

// `explains`: what is drawn, and not only what differs from figure to figure.
std::string CaptionOf(const SweepLaw& law, bool explains) {
  bool held = false, fitted = false, undetermined = false;
  std::string shared;
  for (const SeriesLaw& series : law.series) {
    if (!series.held.empty()) shared = series.held;
    if (!series.analysis) continue;
    fitted = true;
    held = held || series.analysis->hold_out.has_value();
    undetermined = undetermined || !series.analysis->identification.identified();
  }
  std::string text =
      "Points are means over seeds, the faint dots single runs; bars are 95 % intervals of the "
      "mean, from the spread of all seeds of a model.";
  if (fitted) {
    text += " Lines are the fitted laws with 95 % bands of their values, dashed beyond the data";
    text += undetermined ? "; a law that is not identified ends with its data." : ".";
  } else {
    text += " No law could be fitted.";
  }
  if (held) {
    text +=
        " Hollow points are the sizes that the hold-out left out; a cross with a dashed bar is "
        "what "
        "the law of the smaller sizes predicts there for the mean of as many runs.";
  }
  if (!explains) text = "Drawn as above.";
  if (!shared.empty()) text += " Only runs with the largest " + shared + ".";
  return text;
}

struct CostPoint {
  std::string series;
  std::string name;  // of its setting
  double size = 0;
  std::vector<double> costs, losses;
};

// Names of runs' settings.
using SettingNames = std::map<const SweepRun*, std::string>;

// Means by series and size.
std::vector<CostPoint> CostPoints(const SweepData& data, const SettingNames& names, Metric metric,
                                  const std::function<double(const SweepRun&)>& cost) {
  std::map<std::pair<std::string, std::map<std::string, double>>, CostPoint> points;
  for (const SweepRun& run : data.runs) {
    const std::optional<double> loss = run.Loss(metric);
    if (!loss || !(cost(run) > 0)) continue;
    CostPoint& point = points[{run.series, run.sizes}];
    point.series = run.series;
    if (const auto name = names.find(&run); name != names.end()) point.name = name->second;
    point.size = static_cast<double>(run.plan.dense_parameters);
    point.costs.push_back(cost(run));
    point.losses.push_back(*loss);
  }
  std::vector<CostPoint> list;
  for (auto& entry : points) list.push_back(std::move(entry.second));
  return list;
}

// Removes the settings that are worse than the best by over five times as much as the third quarter
// of them: one that failed to learn would press all others into a line. Returns the sentence that
// names them; "" of none.
std::string LeaveOutFarPoints(Metric metric, std::vector<CostPoint>* points) {
  constexpr size_t kFewest = 5;
  constexpr double kFar = 5;
  if (points->size() < kFewest) return "";
  std::vector<double> losses;
  for (const CostPoint& point : *points) losses.push_back(MeanOf(point.losses));
  std::ranges::sort(losses);
  const double limit = losses[0] + kFar * (losses[losses.size() * 3 / 4] - losses[0]);
  std::string left_out;
  std::erase_if(*points, [&](const CostPoint& point) {
    const double loss = MeanOf(point.losses);
    if (loss <= limit) return false;
    left_out += (left_out.empty() ? "not drawn, as far worse: " : ", ") +
                (point.name.empty() ? point.series : point.name) + " (" +
                ValueText(metric, Shown(metric, loss)) + ")";
    return true;
  });
  return left_out;
}

Figure ParetoFigure(const SweepData& data, const SettingNames& names, Metric metric,
                    const std::string& name, const std::string& cost_title,
                    const std::function<double(const SweepRun&)>& cost) {
  ScalingChart chart;
  chart.title = StrCat(metric == Metric::kAuc ? "AUC" : "Logloss", " against ", cost_title);
  chart.x = {.title = cost_title, .logarithmic = true, .prefixes = true};
  chart.y = MetricAxis(metric);
  std::vector<CostPoint> points = CostPoints(data, names, metric, cost);
  chart.subtitle = LeaveOutFarPoints(metric, &points);
  for (size_t s = 0; s < std::min(data.series.size(), kMostSeries); ++s) {
    ScalingSeries& series = chart.series.emplace_back();
    series.name = data.series[s];
    for (const CostPoint& point : points) {
      if (point.series != series.name) continue;
      ScalingPoint& shown = series.points.emplace_back();
      shown.mean.x = MeanOf(point.costs);
      shown.mean.y = Shown(metric, MeanOf(point.losses));
      shown.tip = point.series + ", " + PrefixedNumber(point.size, 3) +
                  " dense parameters: " + ValueText(metric, shown.mean.y) + " for " +
                  PrefixedNumber(shown.mean.x, 3) + " " + cost_title;
      shown.label = point.name;
      chart.front.push_back(shown.mean);
    }
    Thin(kMostPoints, &series.points);
  }
  std::ranges::stable_sort(chart.front, {}, &ChartPoint::x);
  double best = HUGE_VAL;
  std::erase_if(chart.front, [&](const ChartPoint& point) {
    const double loss = metric == Metric::kAuc ? -point.y : point.y;
    if (loss >= best) return true;
    best = loss;
    return false;
  });
  // Names of the best alone.
  for (ScalingSeries& series : chart.series) {
    for (ScalingPoint& point : series.points) {
      const bool best = std::ranges::any_of(chart.front, [&](const ChartPoint& front) {
        return front.x == point.mean.x && front.y == point.mean.y;
      });
      if (!best) point.label.clear();
    }
  }
  return MakeFigure(name, chart);
}

Figure GapFigure(const TestedGap& gap, size_t number) {
  ScalingChart chart;
  chart.title = gap.arms[0].name + " and " + gap.arms[1].name;
  chart.subtitle = gap.why_not.empty()
                       ? Format("energy distance %.3g, p = %.3g", gap.test.distance, gap.test.p)
                       : gap.why_not;
  chart.x = {.title = "training loss"};
  chart.y = {.title = "validation logloss less training loss"};
  size_t points = 0, shown = 0;
  for (const TestedGap::Arm& arm : gap.arms) {
    ScalingSeries& series = chart.series.emplace_back();
    series.name = arm.name;
    for (const LossAndGapRun& run : arm.runs) {
      for (const LossAndGap& point : run) {
        series.points.push_back({.mean = {.x = point.loss, .y = point.gap}});
      }
    }
    points += series.points.size();
    Thin(kMostCloudPoints, &series.points);
    shown += series.points.size();
  }
  if (shown < points) chart.subtitle += Format("; %zu of %zu points are drawn", shown, points);
  return MakeFigure(
      FileName(Format("gap_%zu_", number) + gap.arms[0].name + "_" + gap.arms[1].name), chart);
}

// Whether no model of the series is larger; of one model, none that is trained longer.
bool IsLargest(const ConditionNumbers& one, const std::vector<ConditionNumbers>& numbers) {
  return std::ranges::none_of(numbers, [&](const ConditionNumbers& other) {
    return other.series == one.series && std::pair(other.dense_parameters, other.samples) >
                                             std::pair(one.dense_parameters, one.samples);
  });
}

Figure KernelFigure(const std::vector<ConditionNumbers>& numbers,
                    const std::vector<std::string>& drawn, bool last) {
  const std::string which = last ? "last" : "first";
  LineChart chart = {.title = "Condition numbers at the " + which + " measurement",
                     .subtitle = "largest models: geometric means over runs, 95 % intervals",
                     .x = {.title = "part of the model"},
                     .y = {.title = "condition number", .logarithmic = true},
                     .series = {},
                     .half = true};
  std::vector<std::string>& layers = chart.x.categories;
  for (const ConditionNumbers& each : numbers) {
    if (each.last != last || each.log10.empty() || !IsLargest(each, numbers)) continue;
    auto layer = std::ranges::find(layers, each.layer);
    if (layer == layers.end()) layer = layers.insert(layers.end(), each.layer);
    if (std::ranges::find(drawn, each.series) == drawn.end()) continue;
    auto series = std::ranges::find(chart.series, each.series, &ChartSeries::name);
    if (series == chart.series.end()) {
      series = chart.series.insert(series, {.name = each.series, .points = {}});
    }
    const ChartPoint mean = MeanWithInterval(each.log10);
    series->points.push_back({.x = static_cast<double>(layer - layers.begin()),
                              .y = std::pow(10, mean.y),
                              .low = std::pow(10, mean.low),
                              .high = std::pow(10, mean.high)});
  }
  return MakeFigure("condition_numbers_" + which, chart);
}

Figure SpeedFigure(const SweepData& data, const std::string& name, const std::string& title,
                   const std::string& unit, const std::function<double(const SweepRun&)>& speed) {
  ScalingChart chart;
  chart.title = title + " against dense parameters";
  chart.x = SizeAxis("dense_parameters");
  chart.y = {.title = unit, .logarithmic = true, .prefixes = true};
  for (size_t s = 0; s < std::min(data.series.size(), kMostSeries); ++s) {
    ScalingSeries& series = chart.series.emplace_back();
    series.name = data.series[s];
    std::map<double, std::vector<double>> speeds;
    for (const SweepRun& run : data.runs) {
      if (run.series != series.name || !run.done() || !(speed(run) > 0)) continue;
      speeds[static_cast<double>(run.plan.dense_parameters)].push_back(speed(run));
    }
    for (const auto& [size, values] : speeds) {
      ScalingPoint& point = series.points.emplace_back();
      point.mean.x = size;
      point.mean.y = MeanOf(values);
      point.runs = values;
      point.tip = series.name + ", " + PrefixedNumber(size, 3) +
                  " dense parameters: " + PrefixedNumber(point.mean.y, 3) + " " + unit;
    }
    FinishSeries(&series);
  }
  return MakeFigure(name, chart);
}

}  // namespace

ChartPoint MeanPoint(const SeriesLaw& law, const Configuration& configuration, Metric metric) {
  const double mean = MeanOf(configuration.values);
  const std::optional<double> spread = SeedSpread(law.configurations);
  if (!spread) return {.x = configuration.sizes[0], .y = Shown(metric, mean)};
  int64_t freedom = 0;
  for (const Configuration& each : law.configurations) {
    freedom += static_cast<int64_t>(each.values.size()) - 1;
  }
  const double half = StudentT975(freedom) * *spread * mean /
                      std::sqrt(static_cast<double>(configuration.values.size()));
  return ShownPoint(metric, configuration.sizes[0], mean, {mean - half, mean + half});
}

const HeldOut* HeldOutOf(const SeriesLaw& law, const Configuration& configuration) {
  if (!law.analysis || !law.analysis->hold_out) return nullptr;
  for (const HeldOut& held : law.analysis->hold_out->held_out) {
    if (held.sizes == configuration.sizes) return &held;
  }
  return nullptr;
}

std::vector<FigureGroup> LawFigures(const std::vector<SweepLaw>& laws) {
  std::map<std::vector<std::string>, FigureGroup> by_sizes;
  std::vector<std::vector<std::string>> order;
  FigureGroup entropy = {.heading = "The same in normalised entropy",
                         .caption =
                             "Normalised entropy is the logloss over the entropy of the base "
                             "rate of clicks: the same points and laws in other units.",
                         .figures = {},
                         .folded = true};
  for (const SweepLaw& law : laws) {
    const bool any = std::ranges::any_of(
        law.series, [](const SeriesLaw& series) { return !series.configurations.empty(); });
    // Laws of several sizes are in the table; the heat map shows their points.
    if (!any || law.sizes.size() > 1) continue;
    if (law.metric == Metric::kNormalizedEntropy) {
      entropy.figures.push_back(SingleFigure(law));
      continue;
    }
    FigureGroup& group = by_sizes[law.sizes];
    if (group.figures.empty()) {
      order.push_back(law.sizes);
      group.heading = std::string("Quality against ") + SizeTitle(law.sizes[0]);
      group.caption = CaptionOf(law, /*explains=*/order.size() == 1);
    }
    group.figures.push_back(SingleFigure(law));
  }
  std::vector<FigureGroup> groups;
  for (const std::vector<std::string>& sizes : order) groups.push_back(by_sizes[sizes]);
  if (!entropy.figures.empty()) groups.push_back(std::move(entropy));
  return groups;
}

FigureGroup ParetoFigures(const SweepData& data, const SweepArms& arms) {
  SettingNames names;
  for (const Setting& setting : arms.settings) {
    for (const SweepRun* run : setting.runs) names[run] = setting.name;
  }
  const auto work = [](const SweepRun& run) {
    return static_cast<double>(run.plan.multiply_adds) * static_cast<double>(run.plan.samples);
  };
  const auto seconds = [](const SweepRun& run) {
    return run.done() ? run.status.result->wall_s : 0;
  };
  FigureGroup group = {
      .heading = "",
      .caption =
          "The grey line is the Pareto front: the best that any setting reached for the cost or "
          "less; those on it have their names. Multiply-adds are those of the forward passes over "
          "all training samples; "
          "seconds are whole runs, as they were packed on the machine, loading and "
          "evaluation included. Means over seeds.",
      .figures = {}};
  for (const Metric metric : {Metric::kLogloss, Metric::kAuc}) {
    const std::string name = MetricName(metric);
    group.figures.push_back(ParetoFigure(data, names, metric, name + "_by_cost",
                                         "multiply-adds of the training", work));
    group.figures.push_back(
        ParetoFigure(data, names, metric, name + "_by_seconds", "seconds", seconds));
  }
  return group;
}

FigureGroup ThroughputFigures(const SweepData& data) {
  const auto samples = [](const SweepRun& run) { return run.status.result->samples_per_s; };
  const auto per_core = [](const SweepRun& run) {
    return run.status.result->samples_per_s * static_cast<double>(run.plan.multiply_adds) *
           kTrainingPasses / run.plan.cores();
  };
  std::set<std::pair<int, int>> shapes;
  for (const SweepRun& run : data.runs) shapes.insert({run.plan.ranks, run.plan.threads});
  std::string caption =
      "Time inside training steps alone; runs shared the machine with others of "
      "the sweep. A training step is counted as three forward passes.";
  if (shapes.size() == 1) {
    const auto [ranks, threads] = *shapes.begin();
    caption += Format(
        " Every run had %d rank%s of %d thread%s, so that nothing here says how they "
        "scale with cores.",
        ranks, ranks == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
  } else {
    caption +=
        " Runs had different numbers of cores: compare the right figure, in which equal "
        "heights are equal efficiency of a core.";
  }
  return {.heading = "",
          .caption = caption,
          .figures = {SpeedFigure(data, "samples_per_s", "Throughput", "samples/s", samples),
                      SpeedFigure(data, "work_per_core", "Work of a core", "multiply-adds/s a core",
                                  per_core)}};
}

FigureGroup GapFigures(const SweepData& data) {
  FigureGroup group = {.heading = "",
                       .caption =
                           "A point is a scheduled evaluation: the logloss of training rows by "
                           "the weights of that step, and the validation logloss less that.",
                       .figures = {}};
  for (const TestedGap& gap : data.gaps) {
    group.figures.push_back(GapFigure(gap, group.figures.size() + 1));
  }
  return group;
}

std::vector<ConditionNumbers> ConditionNumbersOf(const SweepData& data) {
  const bool twice =
      std::ranges::any_of(data.runs, [](const SweepRun& run) { return run.kernels.size() > 1; });
  std::vector<ConditionNumbers> found;
  for (const bool last : {false, true}) {
    if (last && !twice) break;
    for (const std::string& series : data.series) {
      for (const SweepRun& run : data.runs) {
        if (run.series != series || run.kernels.empty()) continue;
        const auto& [step, kernels] = last ? *run.kernels.rbegin() : *run.kernels.begin();
        for (const LayerKernel& kernel : kernels) {
          const auto same = [&](const ConditionNumbers& each) {
            return each.last == last && each.series == series && each.sizes == run.sizes &&
                   each.layer == kernel.layer;
          };
          auto at = std::ranges::find_if(found, same);
          if (at == found.end()) {
            at = found.insert(at, {.series = series,
                                   .layer = kernel.layer,
                                   .last = last,
                                   .sizes = run.sizes,
                                   .dense_parameters = run.plan.dense_parameters,
                                   .samples = run.plan.samples,
                                   .least_step = step,
                                   .most_step = step,
                                   .rows = kernel.rows,
                                   .log10 = {}});
          }
          at->least_step = std::min(at->least_step, step);
          at->most_step = std::max(at->most_step, step);
          ++at->runs;
          if (kernel.condition_number) at->log10.push_back(std::log10(*kernel.condition_number));
        }
      }
    }
  }
  return found;
}

ChartPoint MeanWithInterval(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<int64_t>(values.size());
  const double half = MeanHalfWidth(
      std::sqrt(squares / static_cast<double>(std::max<int64_t>(count - 1, 1))), count);
  return {.y = mean, .low = mean - half, .high = mean + half};
}

FigureGroup KernelFigures(const SweepData& data) {
  FigureGroup group = {.heading = "",
                       .caption =
                           "Every part of a series' largest model at the first measurement of "
                           "its runs and at their last; lines only lead the eye.",
                       .figures = {}};
  const std::vector<ConditionNumbers> numbers = ConditionNumbersOf(data);
  if (numbers.empty()) return group;
  std::vector<std::string> drawn = data.series;
  drawn.resize(std::min(drawn.size(), kMostSeries));
  group.figures.push_back(KernelFigure(numbers, drawn, /*last=*/false));
  if (numbers.back().last) group.figures.push_back(KernelFigure(numbers, drawn, /*last=*/true));
  return group;
}

}  // namespace elastor
