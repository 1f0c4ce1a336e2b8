#include "launcher/time_estimate.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/text.h"
#include "launcher/plan_file.h"
#include "trainer/experiment/config.h"

namespace elastor {
namespace {

// What calibration runs do on each of their cores: some two seconds.
constexpr double kCalibrationMultiplyAdds = 4e10;
constexpr int64_t kFewestCalibrationSteps = 4;

}  // namespace

void TimeEstimate::Line::Add(double x, double y, double weight) {
  if (!(y > 0)) return;
  least_ = sum_ == 0 ? x : std::min(least_, x);
  most_ = std::max(most_, x);
  weight /= y * y;
  sum_ += weight;
  x1_ += weight * x;
  x2_ += weight * x * x;
  y1_ += weight * y;
  xy_ += weight * x * y;
}

double TimeEstimate::Line::at(double x) const {
  if (sum_ == 0) return 0;
  constexpr double kAlike = 1e-3;
  if (most_ - least_ <= kAlike * most_) {
    // One size says nothing of b: it goes with a as a run's cost has it.
    return y1_ / sum_ * (x + kFixedMultiplyAdds) / (x1_ / sum_ + kFixedMultiplyAdds);
  }
  const double spread = sum_ * x2_ - x1_ * x1_;
  const double a = (y1_ * x2_ - x1_ * xy_) / spread;
  const double b = (sum_ * xy_ - x1_ * y1_) / spread;
  if (b < 0) return y1_ / sum_;
  return a < 0 ? xy_ / x2_ * x : a + b * x;
}

void TimeEstimate::Add(const PlannedRun& run, const Summary& result) {
  if (!(result.samples_per_s > 0) || run.samples == 0) return;
  const double steps = static_cast<double>(run.samples) / result.samples_per_s;
  const auto multiply_adds = static_cast<double>(run.multiply_adds);
  for (Lines* lines : {&by_model_[{run.model, run.ranks, run.threads}], &by_cores_[run.cores()]}) {
    lines->of_sample.Add(multiply_adds, 1 / result.samples_per_s, steps);
    // The summary of a resumed run covers only its last process, which says nothing here.
    lines->of_rest.Add(multiply_adds, result.wall_s - steps, 1);
  }
}

std::optional<double> TimeEstimate::Seconds(const PlannedRun& run) const {
  const Lines* lines = nullptr;
  if (const auto alike = by_cores_.find(run.cores()); alike != by_cores_.end()) {
    lines = &alike->second;
  }
  const auto found = by_model_.find({run.model, run.ranks, run.threads});
  const bool of_model = found != by_model_.end();
  if (of_model) lines = &found->second;
  const auto multiply_adds = static_cast<double>(run.multiply_adds);
  const bool predicted = !of_model && run.predicted_sample_s > 0;
  if (lines == nullptr && !predicted) return std::nullopt;
  const double sample = predicted ? run.predicted_sample_s : lines->of_sample.at(multiply_adds);
  const double rest = lines == nullptr ? 0 : lines->of_rest.at(multiply_adds);
  return static_cast<double>(run.samples) * sample + rest;
}

SweepFiles CalibrationFiles(const SweepFiles& files, const Machine& machine) {
  return {files.root + "/calibration/" + machine.host};
}

TimeEstimate EstimateFrom(const Plan& plan, const SweepFiles& files, const Machine& machine) {
  TimeEstimate estimate;
  const auto add = [&](const Plan& measured, const SweepFiles& where) {
    for (const PlannedRun& run : measured.runs) {
      const std::optional<Summary> result = ReadResult(where, run.folder);
      if (result) estimate.Add(run, *result);
    }
  };
  add(plan, files);
  const SweepFiles calibration = CalibrationFiles(files, machine);
  if (const StatusOr<Plan> measured = ReadPlan(calibration); measured.ok()) {
    add(*measured, calibration);
  }
  return estimate;
}

Plan CalibrationPlan(const Plan& plan) {
  std::map<std::tuple<std::string, int, int>, std::map<int64_t, const PlannedRun*>> sizes;
  for (const PlannedRun& run : plan.runs) {
    sizes[{run.model, run.ranks, run.threads}].emplace(run.multiply_adds, &run);
  }
  Plan calibration;
  calibration.name = "calibration";
  for (const auto& [model, by_size] : sizes) {
    const std::map<size_t, int> chosen = {{0, 0}, {by_size.size() / 2, 0}, {by_size.size() - 1, 0}};
    for (const auto& [place, unused] : chosen) {
      PlannedRun run = *std::next(by_size.begin(), static_cast<std::ptrdiff_t>(place))->second;
      Experiment experiment = ParseExperiment(run.experiment, run.folder).value();
      const int64_t batch = experiment.training().batch_size();
      const double samples =
          kCalibrationMultiplyAdds * run.cores() * static_cast<double>(run.samples) / run.cost();
      run.steps = std::clamp(static_cast<int64_t>(samples / static_cast<double>(batch)),
                             std::min(kFewestCalibrationSteps, run.steps), run.steps);
      run.samples = std::min(run.samples, run.steps * batch);
      experiment.mutable_training()->set_max_steps(run.steps);
      experiment.mutable_spectrum()->set_disabled(true);
      run.experiment = ExperimentText(experiment);
      run.predictions.clear();
      run.columns.clear();
      run.folder = FolderName({run.model, StrCat("multiply_adds", run.multiply_adds)},
                              RunHash(experiment, HashOfFolder(run.folder), ""));
      calibration.runs.push_back(std::move(run));
    }
  }
  return calibration;
}

double SecondsOnCores(std::span<const Work> running, std::vector<Work> waiting, int cores) {
  std::vector<double> free(cores, 0);  // when each is, ascending
  const auto begin = [&](const Work& work, double start) {
    std::fill_n(free.begin(), work.cores, start + work.seconds);
    std::ranges::sort(free);
  };
  for (const Work& work : running) begin(work, 0);
  std::ranges::stable_sort(waiting, std::greater<>(), &Work::seconds);
  for (const Work& work : waiting) begin(work, free[work.cores - 1]);
  return free.back();
}

}  // namespace elastor
