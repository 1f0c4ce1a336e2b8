#include "launcher/sweep_report/sweep_data.h"

#include <algorithm>
#include <set>

#include "core/base/file.h"
#include "core/base/numerics.h"
#include "core/base/text.h"
#include "launcher/comparison/loss_and_gap.h"
#include "launcher/plan_file.h"
#include "launcher/run_command.h"
#include "launcher/sweep_file.h"
#include "trainer/experiment/config.h"
#include "trainer/records/run_reader.h"

namespace elastor {
namespace {

// Beyond so many, values that differ from run to run are counted instead of listed.
constexpr size_t kMostListed = 3;

Status ReadMetrics(const std::string& folder, SweepRun* run) {
  std::map<int64_t, std::vector<StageRank>> ranks;
  ELASTOR_RETURN_IF_ERROR(ReadRecords(folder, [&](const RunRecord& record) {
    if (const auto* eval = std::get_if<EvalRecord>(&record.values)) {
      run->normalized_entropy = eval->metrics.normalized_entropy;
    } else if (record.event == "spectrum") {
      const auto& spectrum = std::get<SpectrumRecord>(record.values);
      ranks[record.step].push_back({spectrum.stage, Finite(spectrum.stable.mean).value_or(0),
                                    Finite(spectrum.entropy.mean).value_or(0),
                                    static_cast<double>(spectrum.max_rank)});
    } else if (const auto* ntk = std::get_if<NtkRecord>(&record.values)) {
      run->kernels[record.step].push_back({.layer = ntk->layer,
                                           .rows = ntk->rows,
                                           .parameters = ntk->parameters,
                                           .rank = ntk->rank.value_or(0),
                                           .lambda_max = Finite(ntk->lambda_max).value_or(0),
                                           .lambda_min = ntk->lambda_min,
                                           .condition_number = ntk->condition_number});
    }
    return OkStatus();
  }));
  if (ranks.empty()) return OkStatus();
  run->first_step = ranks.begin()->first;
  run->last_step = ranks.rbegin()->first;
  run->first_ranks = std::move(ranks.begin()->second);
  run->last_ranks = ranks.size() > 1 ? std::move(ranks.rbegin()->second) : run->first_ranks;
  return OkStatus();
}

// The different values of one figure, for the provenance.
class Values {
 public:
  void Add(const std::string& value) {
    if (value.empty()) return;
    ++runs_;
    if (known_.insert(value).second) ordered_.push_back(value);
  }
  std::string Text() const {
    if (ordered_.size() > kMostListed) return std::to_string(ordered_.size()) + " different ones";
    std::string text;
    for (const std::string& value : ordered_) text += (text.empty() ? "" : ", ") + value;
    return text;
  }

 private:
  int runs_ = 0;
  std::set<std::string> known_;
  std::vector<std::string> ordered_;
};

class Provenance {
 public:
  void AddRun(const std::string& folder, const Summary& summary) {
    const auto count = [](int64_t number) {
      return number > 0 ? std::to_string(number) : std::string();
    };
    data_.Add(DataFingerprintOf(folder));
    build_.Add(summary.build);
    numerics_.Add(WithoutCompiler(summary.numerics));
    isa_.Add(summary.isa);
    ranks_.Add(count(summary.ranks));
    virtual_shards_.Add(count(summary.virtual_shards));
    steps_.Add(count(summary.steps));
    evaluated_.Add(std::to_string(summary.rows) + " rows of the " + summary.split + " split");
  }
  void AddPath(const std::string& path) { paths_.Add(path); }
  std::string Evaluated() const { return evaluated_.Text(); }
  std::vector<std::pair<std::string, std::string>> Entries() const {
    std::vector<std::pair<std::string, std::string>> entries = {
        {"Data set", paths_.Text()},
        {"Fingerprint of the data", data_.Text()},
        {"Measured on", evaluated_.Text()},
        {"Build", build_.Text()},
        {"Numerics of the build", numerics_.Text()},
        {"Instruction set of the kernels", isa_.Text()},
        {"Ranks", ranks_.Text()},
        {"Virtual shards", virtual_shards_.Text()},
        {"Steps", steps_.Text()}};
    std::erase_if(entries, [](const auto& entry) { return entry.second.empty(); });
    return entries;
  }

 private:
  Values paths_, data_, evaluated_, build_, numerics_, isa_, ranks_, virtual_shards_, steps_;
};

// What is known of a run before it has begun; returns the model's kind.
std::string ReadExperimentOf(const std::string& path, SweepRun* run, Provenance* provenance) {
  run->sizes = {{"dense_parameters", static_cast<double>(run->plan.dense_parameters)},
                {"multiply_adds", static_cast<double>(run->plan.multiply_adds)},
                {"samples", static_cast<double>(run->plan.samples)}};
  std::erase_if(run->sizes, [](const auto& size) { return size.second <= 0; });
  const StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return "";
  const StatusOr<Experiment> experiment = ParseExperiment(*text, path);
  if (!experiment.ok()) return "";
  run->seed = static_cast<int64_t>(experiment->training().seed());
  run->learning_rate = experiment->optimizer().learning_rate();
  AddModelSizes(experiment->model(), &run->sizes);
  provenance->AddPath(experiment->data().path());
  return ModelName(experiment->model());
}

TestedGap TestGap(const GapTest& asked, const SweepData& data, const SweepFiles& files) {
  TestedGap tested;
  tested.arms[0].name = asked.first();
  tested.arms[1].name = asked.second();
  for (TestedGap::Arm& arm : tested.arms) {
    for (const SweepRun& run : data.runs) {
      // The arms' axis is the only one with labels, and these come first.
      const std::vector<std::string>& columns = run.plan.columns;
      if (!run.done() || columns.empty() || columns[0] != arm.name) continue;
      StatusOr<LossAndGapRun> points =
          ReadLossAndGap(files.Run(run.plan.folder), asked.from_step());
      if (!points.ok()) {
        tested.why_not = points.status().message();
        return tested;
      }
      arm.runs.push_back(std::move(points).value());
    }
    if (arm.runs.empty()) tested.why_not = "no run of " + arm.name + " is done";
  }
  if (tested.why_not.empty()) {
    tested.test = TestEnergyDistance(tested.arms[0].runs, tested.arms[1].runs);
  }
  return tested;
}

}  // namespace

std::optional<double> SweepRun::Loss(Metric metric) const {
  if (!done()) return std::nullopt;
  const MetricValues& metrics = status.result->metrics;
  if (metric == Metric::kLogloss) return Finite(metrics.logloss);
  if (metric == Metric::kNormalizedEntropy) return normalized_entropy;
  if (!metrics.auc) return std::nullopt;
  return 1 - *metrics.auc;
}

int SweepData::Count(RunState state) const {
  return static_cast<int>(
      std::ranges::count(runs, state, [](const SweepRun& run) { return run.status.state; }));
}

StatusOr<SweepData> ReadSweepData(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(Plan plan, ReadPlan(files));
  SweepData data;
  data.name = plan.name;
  data.columns = plan.columns;
  data.root = files.root;
  if (StatusOr<std::string> text = ReadFile(files.Sweep()); text.ok()) data.sweep_text = *text;
  const StatusOr<Sweep> sweep = LoadSweep(files.Sweep(), {});
  Provenance provenance;
  std::vector<std::string> kinds;
  int trials = 0;
  for (PlannedRun& planned : plan.runs) {
    if (planned.stage == Stage::kTune) {
      ++trials;
      continue;
    }
    SweepRun& run = data.runs.emplace_back();
    run.plan = std::move(planned);
    if (sweep.ok()) run.plan.predictions = sweep->predictions();
    run.status = ReadStatus(run.plan, files);
    kinds.push_back(ReadExperimentOf(files.Experiment(run.plan.folder), &run, &provenance));
    run.command = Join(LocalCommand(run.plan, files, "trainer"), " ");
    if (!run.done()) continue;
    ELASTOR_RETURN_IF_ERROR(ReadMetrics(files.Run(run.plan.folder), &run));
    provenance.AddRun(files.Run(run.plan.folder), *run.status.result);
  }
  AssignSeries(kinds, &data);
  if (sweep.ok()) {
    for (const GapTest& asked : sweep->gap_test()) data.gaps.push_back(TestGap(asked, data, files));
  }
  data.evaluated = provenance.Evaluated();
  data.provenance = provenance.Entries();
  if (trials > 0) {
    data.provenance.emplace_back("tuning",
                                 std::to_string(trials) + " trials, which runs.csv lists");
  }
  for (const TunedConfiguration& tuned : plan.tuned) {
    const std::string outcome = tuned.failure.empty() ? tuned.chosen : tuned.failure;
    data.provenance.emplace_back("tuning of " + tuned.name,
                                 outcome + (tuned.warning.empty() ? "" : ": " + tuned.warning));
  }
  return data;
}

}  // namespace elastor
