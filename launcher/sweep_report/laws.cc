#include "launcher/sweep_report/laws.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "core/base/exhausted.h"
#include "core/base/text.h"

namespace elastor {
namespace {

constexpr Metric kMetrics[] = {Metric::kLogloss, Metric::kAuc, Metric::kNormalizedEntropy};
constexpr size_t kLeastValues = 3;  // of a size, for a law over it

// Different values of a size; none where a run lacks it.
std::set<double> ValuesOf(const std::vector<const SweepRun*>& runs, const std::string& size) {
  std::set<double> values;
  for (const SweepRun* run : runs) {
    const auto found = run->sizes.find(size);
    if (found == run->sizes.end()) return {};
    values.insert(found->second);
  }
  return values;
}

size_t CountOfPairs(const std::vector<const SweepRun*>& runs, const std::string& first,
                    const std::string& second) {
  std::set<std::pair<double, double>> pairs;
  for (const SweepRun* run : runs) pairs.emplace(run->sizes.at(first), run->sizes.at(second));
  return pairs.size();
}

std::vector<const SweepRun*> RunsOf(const SweepData& data, const std::string& series) {
  std::vector<const SweepRun*> runs;
  for (const SweepRun& run : data.runs) {
    if (run.series == series) runs.push_back(&run);
  }
  return runs;
}

// Whether the two vary independently of each other, and not as one.
bool VaryTogether(const std::vector<const SweepRun*>& runs, const std::string& first,
                  const std::string& second) {
  const size_t a = ValuesOf(runs, first).size(), b = ValuesOf(runs, second).size();
  return a >= kLeastValues && b >= kLeastValues &&
         CountOfPairs(runs, first, second) > std::max(a, b);
}

std::vector<std::vector<std::string>> SizesOfLaws(const SweepData& data) {
  std::vector<std::vector<std::string>> laws = {{"dense_parameters"}, {"multiply_adds"}};
  const auto add = [&laws](const std::vector<std::string>& sizes) {
    if (std::ranges::find(laws, sizes) == laws.end()) laws.push_back(sizes);
  };
  for (const std::string& series : data.series) {
    const std::vector<const SweepRun*> runs = RunsOf(data, series);
    const size_t widths = ValuesOf(runs, "width").size(), depths = ValuesOf(runs, "depth").size();
    if (depths >= kLeastValues && widths == 1) add({"depth"});
    if (widths >= kLeastValues && depths == 1) add({"width"});
    if (VaryTogether(runs, "width", "depth")) add({"width", "depth"});
    if (ValuesOf(runs, "samples").size() < kLeastValues) continue;
    add({"samples"});
    if (VaryTogether(runs, "dense_parameters", "samples")) add({"dense_parameters", "samples"});
  }
  return laws;
}

// Leaves the runs with the largest value of a size that the law does not have.
void Hold(const std::string& size, std::vector<const SweepRun*>* runs, std::string* held) {
  const std::set<double> values = ValuesOf(*runs, size);
  if (values.size() < 2) return;
  const double largest = *values.rbegin();
  std::erase_if(*runs, [&](const SweepRun* run) { return run->sizes.at(size) != largest; });
  *held = std::string(SizeTitle(size)) + Format(" %.0f", largest);
}

SeriesLaw PrepareSeries(const SweepData& data, const std::string& name, const SweepLaw& law) {
  SeriesLaw series;
  series.series = name;
  std::vector<const SweepRun*> runs = RunsOf(data, name);
  std::erase_if(runs, [&](const SweepRun* run) { return !run->Loss(law.metric); });
  const auto has = [&law](const char* size) {
    return std::ranges::find(law.sizes, size) != law.sizes.end();
  };
  if (!has("samples")) Hold("samples", &runs, &series.held);
  if (law.sizes.size() == 1 && has("samples")) Hold("dense_parameters", &runs, &series.held);
  std::map<std::vector<double>, Configuration> configurations;
  for (const SweepRun* run : runs) {
    std::vector<double> sizes;
    for (const std::string& size : law.sizes) {
      const auto found = run->sizes.find(size);
      if (found == run->sizes.end()) {
        series.why_not = StrCat("the ", SizeTitle(size), " of its runs are not known");
        return series;
      }
      sizes.push_back(found->second);
    }
    Configuration& configuration = configurations[sizes];
    configuration.sizes = sizes;
    configuration.values.push_back(*run->Loss(law.metric));
  }
  for (auto& [sizes, configuration] : configurations) {
    std::ranges::sort(configuration.values);
    series.configurations.push_back(std::move(configuration));
  }
  const Status enough = EnoughToFit(series.configurations, law.sizes, /*single_seeds=*/false);
  series.why_not = enough.message();
  return series;
}

}  // namespace

std::vector<SweepLaw> FitLaws(const SweepData& data, const AnalysisOptions& options) {
  std::vector<SweepLaw> laws;
  for (const std::vector<std::string>& sizes : SizesOfLaws(data)) {
    for (const Metric metric : kMetrics) {
      SweepLaw& law = laws.emplace_back();
      law.metric = metric;
      law.sizes = sizes;
      for (const std::string& name : data.series) {
        if (law.series.size() < kMostSeries) law.series.push_back(PrepareSeries(data, name, law));
      }
    }
  }
  std::vector<std::pair<const SweepLaw*, SeriesLaw*>> tasks;
  for (SweepLaw& law : laws) {
    for (SeriesLaw& series : law.series) {
      if (series.why_not.empty()) tasks.emplace_back(&law, &series);
    }
  }
  // Every analysis is a function of its series alone, so that their order is nothing to them.
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) {
      auto& [law, series] = tasks[i];
      series->analysis = Analyse(series->series, law->sizes, series->configurations, options);
    }
  };
  const size_t threads = std::min<size_t>(tasks.size(), std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) {
    others.push_back(StartThread(static_cast<int64_t>(i), static_cast<int64_t>(threads) - 1,
                                 "fitting laws", work));
  }
  work();
  for (std::thread& other : others) other.join();
  for (SweepLaw& law : laws) {
    // Equal widths or depths of different models are no equal sizes.
    if (law.sizes.size() != 1 || law.sizes[0] == "width" || law.sizes[0] == "depth") continue;
    for (size_t i = 0; i < law.series.size(); ++i) {
      for (size_t j = i + 1; j < law.series.size(); ++j) {
        if (!law.series[i].analysis || !law.series[j].analysis) continue;
        law.comparisons.push_back(
            CompareModels(*law.series[i].analysis, *law.series[j].analysis, law.sizes.front()));
      }
    }
  }
  return laws;
}

double Shown(Metric metric, double loss) { return metric == Metric::kAuc ? 1 - loss : loss; }

const char* ShownName(Metric metric) {
  if (metric == Metric::kAuc) return "AUC";
  return metric == Metric::kLogloss ? "logloss" : "normalised entropy";
}

const char* SizeTitle(const std::string& size) {
  if (size == "dense_parameters") return "dense parameters";
  if (size == "multiply_adds") return "multiply-adds a sample";
  if (size == "samples") return "training samples";
  return size == "width" ? "width" : "depth";
}

}  // namespace elastor
