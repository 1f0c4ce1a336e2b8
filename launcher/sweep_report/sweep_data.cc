#include "launcher/sweep_report/sweep_data.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "core/base/file.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"
#include "launcher/comparison/loss_and_gap.h"
#include "launcher/plan_file.h"
#include "launcher/run_command.h"
#include "launcher/sweep_file.h"
#include "nlohmann/json.hpp"
#include "trainer/experiment/config.h"

namespace elastor {
namespace {

// Beyond so many, values that differ from run to run are counted instead of listed.
constexpr size_t kMostListed = 3;

Json ParseObject(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && !NestsTooDeep(text) ? json : Json::object();
}

std::optional<double> Number(const Json& json, const char* name) {
  const auto entry = json.find(name);
  if (entry == json.end() || !entry->is_number()) return std::nullopt;
  return entry->get<double>();
}
int64_t IntegerOf(const Json& json, const char* name) {
  const auto entry = json.find(name);
  return entry != json.end() && entry->is_number_integer() ? entry->get<int64_t>() : 0;
}

std::string TextOf(const Json& json, const char* name) {
  const auto entry = json.find(name);
  if (entry == json.end() || entry->is_null()) return "";
  return entry->is_string() ? entry->get<std::string>() : entry->dump();
}

Status ReadMetrics(const std::string& path, SweepRun* run) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::istringstream lines(text);
  std::map<int64_t, std::vector<StageRank>> ranks;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("{\"event\":\"eval\"")) {
      run->normalized_entropy = Number(ParseObject(line), "normalized_entropy");
    } else if (line.starts_with("{\"event\":\"spectrum\"")) {
      const Json json = ParseObject(line);
      ranks[IntegerOf(json, "step")].push_back(
          {TextOf(json, "stage"), Number(json, "stable_rank_mean").value_or(0),
           Number(json, "entropy_rank_mean").value_or(0), Number(json, "max_rank").value_or(0)});
    } else if (line.starts_with("{\"event\":\"ntk\"")) {
      const Json json = ParseObject(line);
      run->kernels[IntegerOf(json, "step")].push_back(
          {.layer = TextOf(json, "layer"),
           .rows = IntegerOf(json, "rows"),
           .parameters = IntegerOf(json, "parameters"),
           .rank = IntegerOf(json, "rank"),
           .lambda_max = Number(json, "lambda_max").value_or(0),
           .lambda_min = Number(json, "lambda_min"),
           .condition_number = Number(json, "condition_number")});
    }
  }
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

// The fingerprint of the data set that a run was trained on, from its model's manifest.
std::string DataFingerprint(const std::string& run_directory) {
  const StatusOr<std::string> text = ReadFile(run_directory + "/model/manifest.json");
  return text.ok() ? TextOf(ParseObject(*text), "data") : "";
}

class Provenance {
 public:
  void AddRun(const std::string& run_directory) {
    data_.Add(DataFingerprint(run_directory));
    const StatusOr<std::string> text = ReadFile(run_directory + "/summary.json");
    if (!text.ok()) return;
    const Json summary = ParseObject(*text);
    for (const char* name : kNames) values_[name].Add(TextOf(summary, name));
    evaluated_.Add(TextOf(summary, "rows") + " rows of the " + TextOf(summary, "split") + " split");
  }
  void AddPath(const std::string& path) { paths_.Add(path); }
  std::string Evaluated() const { return evaluated_.Text(); }
  std::vector<std::pair<std::string, std::string>> Entries() const {
    constexpr const char* kMeanings[] = {"Numerics of the build", "Instruction set of the kernels",
                                         "Ranks", "Virtual shards", "Steps"};
    std::vector<std::pair<std::string, std::string>> entries;
    if (!paths_.Text().empty()) entries.emplace_back("Data set", paths_.Text());
    if (!data_.Text().empty()) entries.emplace_back("Fingerprint of the data", data_.Text());
    if (!evaluated_.Text().empty()) entries.emplace_back("Measured on", evaluated_.Text());
    for (size_t i = 0; i < std::size(kNames); ++i) {
      const auto found = values_.find(kNames[i]);
      if (found == values_.end() || found->second.Text().empty()) continue;
      entries.emplace_back(kMeanings[i], found->second.Text());
    }
    return entries;
  }

 private:
  static constexpr const char* kNames[] = {"numerics", "isa", "ranks", "virtual_shards", "steps"};
  std::map<std::string, Values> values_;
  Values evaluated_, data_, paths_;
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
  if (metric == Metric::kLogloss) return status.result->logloss;
  if (metric == Metric::kNormalizedEntropy) return normalized_entropy;
  if (!status.result->auc) return std::nullopt;
  return 1 - *status.result->auc;
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
    ELASTOR_RETURN_IF_ERROR(ReadMetrics(files.Run(run.plan.folder) + "/metrics.jsonl", &run));
    provenance.AddRun(files.Run(run.plan.folder));
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
