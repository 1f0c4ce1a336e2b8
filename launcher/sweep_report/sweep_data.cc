#include "launcher/sweep_report/sweep_data.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <sstream>
#include <string_view>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
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
constexpr int64_t kMostTime = int64_t{1} << 40;

Status ReadMetrics(const std::string& folder, SweepRun* run) {
  std::map<int64_t, std::vector<StageRank>> ranks;
  ELASTOR_RETURN_IF_ERROR(ReadRecords(folder, [&](const RunRecord& record) {
    if (const auto* eval = std::get_if<EvalRecord>(&record.values)) {
      run->normalized_entropy = eval->metrics.normalized_entropy;
      const std::optional<int64_t> best = run->status.result->best_step;
      const bool skipped = run->best_weights && best && eval->scheduled && record.step != *best;
      if (!eval->split.empty() && !skipped) run->splits[eval->split] = eval->metrics;
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
  run->splits[run->status.result->split] = run->status.result->metrics;
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

// First start and last end of the attempts, in seconds since 1970.
struct Span {
  int64_t first = 0, last = 0;

  // A line that is damaged counts as none, as for the state of a run.
  void Add(const std::string& path) {
    const StatusOr<std::string> text = ReadFile(path);
    if (!text.ok()) return;
    std::istringstream lines(*text);
    int64_t start = 0;
    for (std::string line; std::getline(lines, line);) {
      try {
        const Json json = ParseJson(line);
        const JsonEntry entry(json);
        const std::string event = entry.Member("event").Text();
        if (event == "start") {
          start = entry.Member("time").Integer(0, kMostTime);
          if (first == 0 || start < first) first = start;
        } else if (event == "end") {
          last = std::max(last, start + static_cast<int64_t>(entry.Member("seconds").Number()));
        }
      } catch (const std::string&) {
      }
    }
  }
};

std::string TimeText(int64_t seconds, const char* format) {
  const std::time_t time = seconds;
  std::tm utc = {};
  char text[64];
  gmtime_r(&time, &utc);
  return {text, std::strftime(text, sizeof(text), format, &utc)};
}

// "Trained on 26 November 2026, 04:12 to 04:19 UTC, on host a; launcher --sweep=..."
std::string MadeText(const Span& span, const SweepFiles& files) {
  std::string text;
  if (span.first > 0) {
    constexpr char kDay[] = "%Y-%m-%d", kTime[] = "%H:%M";
    const int64_t last = std::max(span.first, span.last);
    text = "Trained from " + TimeText(span.first, kDay) + " " + TimeText(span.first, kTime) +
           " to " +
           (TimeText(span.first, kDay) == TimeText(last, kDay) ? "" : TimeText(last, kDay) + " ") +
           TimeText(last, kTime) + " UTC";
  }
  constexpr std::string_view kOnHost = " on host ";
  const StatusOr<std::string> owner = ReadFile(files.Lock());
  const std::string lock = owner.ok() ? *owner : "";
  const size_t host = lock.find(kOnHost);
  if (!text.empty() && host != lock.npos) {
    text += lock.substr(host, lock.find_first_of(" \n", host + kOnHost.size()) - host);
  }
  if (!text.empty()) text += ". ";
  return text + "Command: launcher --sweep=" + files.Sweep() + " --output_dir=" + files.root;
}

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
  run->best_weights = experiment->training().monitor().best_weights();
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

std::vector<size_t> SweepData::TunedColumns() const {
  std::vector<size_t> tuned;
  const auto stage = std::ranges::find(columns, "stage");
  const auto warning = std::ranges::find(columns, "tuning_warning");
  if (stage == columns.end() || warning == columns.end()) return tuned;
  for (auto column = stage + 1; column < warning; ++column) {
    tuned.push_back(column - columns.begin());
  }
  return tuned;
}

bool SweepData::IsOfTuning(size_t column) const {
  if (columns[column] == "stage" || columns[column] == "tuning_warning") return true;
  const std::vector<size_t> tuned = TunedColumns();
  return std::ranges::find(tuned, column) != tuned.end();
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
  Span span;
  for (PlannedRun& planned : plan.runs) {
    span.Add(files.Attempts(planned.folder));
    if (planned.stage == Stage::kTune) {
      SweepRun& trial = data.trials.emplace_back();
      trial.plan = std::move(planned);
      trial.status = ReadStatus(trial.plan, files);
      continue;
    }
    SweepRun& run = data.runs.emplace_back();
    run.plan = std::move(planned);
    if (sweep.ok()) run.plan.predictions = sweep->predictions();
    run.status = ReadStatus(run.plan, files);
    kinds.push_back(ReadExperimentOf(files.Experiment(run.plan.folder), &run, &provenance));
    // A run that has not begun has no experiment yet.
    if (kinds.back().empty()) kinds.back() = LowerCase(run.plan.model);
    run.command = Join(LocalCommand(run.plan, files, "trainer"), " ");
    if (!run.done()) continue;
    ELASTOR_RETURN_IF_ERROR(ReadMetrics(files.Run(run.plan.folder), &run));
    provenance.AddRun(files.Run(run.plan.folder), *run.status.result);
  }
  AssignSeries(kinds, &data);
  if (sweep.ok()) {
    data.tuning = sweep->tuning();
    for (const GapTest& asked : sweep->gap_test()) data.gaps.push_back(TestGap(asked, data, files));
  }
  data.evaluated = provenance.Evaluated();
  data.provenance = provenance.Entries();
  if (!data.trials.empty()) {
    data.provenance.emplace_back(
        "tuning", std::to_string(data.trials.size()) + " trials, which runs.csv lists");
  }
  for (const TunedConfiguration& tuned : plan.tuned) {
    const std::string outcome = tuned.failure.empty() ? tuned.chosen : tuned.failure;
    data.provenance.emplace_back("tuning of " + tuned.name,
                                 outcome + (tuned.warning.empty() ? "" : ": " + tuned.warning));
  }
  data.tuned = std::move(plan.tuned);
  data.made = MadeText(span, files);
  return data;
}

}  // namespace elastor
