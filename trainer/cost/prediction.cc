#include "trainer/cost/prediction.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "collective/rank_hosts.h"
#include "configs/proto/experiment.pb.h"
#include "configs/proto/machine.pb.h"
#include "core/base/text.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/process/build_info.h"
#include "core/report/chart.h"
#include "embedding/early_rows.h"
#include "trainer/cost/step_program.h"
#include "trainer/experiment/make_options.h"
#include "trainer/step/thread_shares.h"

namespace elastor {
namespace {

// Steps that are played; the last one is read. In the first, no rank waits for an earlier one.
constexpr int kSteps = 3;

double Sum(const std::array<double, kStepParts>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void FindSlowest(const StepProgram& program, Prediction* prediction) {
  const auto ranks = static_cast<double>(program.work.size());
  std::array<double, kStepParts> mean{};
  for (const auto& work : program.work) {
    for (int p = 0; p < kStepParts; ++p) mean[p] += work[p] / ranks;
  }
  prediction->mean_work = Sum(mean);
  for (size_t r = 0; r < program.work.size(); ++r) {
    const double work = Sum(program.work[r]);
    if (work <= prediction->slowest_work) continue;
    prediction->slowest_work = work;
    prediction->slowest_rank = static_cast<int>(r);
  }
  const auto& slowest = program.work[prediction->slowest_rank];
  int part = 0;
  for (int p = 1; p < kStepParts; ++p) {
    if (slowest[p] - mean[p] > slowest[part] - mean[part]) part = p;
  }
  prediction->slowest_part = static_cast<StepPart>(part);
}

void SplitCommunication(const StepProgram& program, const SimResult& result,
                        Prediction* prediction) {
  const std::vector<double>& marks = result.marks[0];
  const int step = kSteps - 1;
  double beside = 0;
  for (size_t c = 0; c < program.calls.size(); ++c) {
    const size_t index = step * program.calls.size() + c;
    const double seconds = result.left[index][0] - result.entered[index][0];
    (program.calls[c].beside ? beside : prediction->exposed_seconds) += seconds;
  }
  const auto between = [&](int begin, int end) {
    return marks[program.MarkOf(step, end)] - marks[program.MarkOf(step, begin)];
  };
  double waited = between(StepProgram::kComputed, static_cast<int>(StepPart::kReduce));
  for (int b = 0; b < program.buckets; ++b) {
    waited += between(StepProgram::kWaits + 2 * b, StepProgram::kWaits + 2 * b + 1);
  }
  const double exposed = std::min(beside, waited);
  prediction->hidden_seconds = beside - exposed;
  prediction->exposed_seconds += exposed;
}

}  // namespace

Predictor::Predictor(const Experiment* experiment, const Machine* machine,
                     const ResolvedModel* model, const DatasetInfo* info, const Dataset* dataset)
    : experiment_(experiment),
      machine_(machine),
      model_(model),
      info_(info),
      dataset_(dataset),
      graph_(CpuExecutor<float>(model->graph).graph()),
      product_rate_(ProductRate(*machine, PrecisionOf(experiment->training()))),
      work_(machine, product_rate_.ok() ? *product_rate_ : 1, &graph_,
            PrecisionOf(experiment->training())) {}

StatusOr<std::span<const SparseBatch>> Predictor::BatchesOf(int64_t rows) {
  if (!batches_.empty() && batch_rows_ == rows) return std::span<const SparseBatch>(batches_);
  const int count = experiment_->parallel().first_ids_first() ? 2 : 1;
  batches_.clear();
  if (dataset_ == nullptr) {
    const auto& bags = experiment_->data().shape().bags_of_fields();
    for (int i = 0; i < count; ++i) {
      batches_.push_back(
          UniformBatch(rows, {bags.data(), static_cast<size_t>(bags.size())}, *model_, i));
    }
  } else {
    Experiment sized = *experiment_;
    sized.mutable_training()->set_batch_size(static_cast<int32_t>(rows));
    ELASTOR_ASSIGN_OR_RETURN(batches_, FirstBatches(sized, *model_, *dataset_, count));
  }
  batch_rows_ = rows;
  return std::span<const SparseBatch>(batches_);
}

StatusOr<Prediction> Predictor::Predict(int ranks, int ranks_per_host, int64_t batch_rows) {
  if (experiment_->parallel().plan() == ParallelConfig::PLANNED) {
    ELASTOR_ASSIGN_OR_RETURN(const PlanSearch searched,
                             SearchPlan(ranks, ranks_per_host, batch_rows));
    return searched.prediction;
  }
  ELASTOR_ASSIGN_OR_RETURN(const ShardPlan plan, MakePlan(*experiment_, model_->tables, ranks));
  return PredictPlan(plan, ranks_per_host, batch_rows);
}

StatusOr<Prediction> Predictor::PredictPlan(const ShardPlan& plan, int ranks_per_host,
                                            int64_t batch_rows) {
  const int ranks = plan.ranks();
  ELASTOR_RETURN_IF_ERROR(product_rate_.status());
  if (ranks > kMostPredictedRanks) {
    return UserError(StrCat("--ranks=", ranks,
                            ": a prediction plays every message; expected at most ",
                            kMostPredictedRanks, " with a machine"));
  }
  const int threads = machine_->gpus() ? 1 : experiment_->parallel().threads();
  if (ranks_per_host == 0) {
    ranks_per_host = std::max(1, machine_->units_per_host() / threads);
  }
  ranks_per_host = std::min(ranks, ranks_per_host);
  if (ranks_per_host > 1 && !machine_->has_same_host()) {
    return UserError(
        StrCat("machine '", machine_->name(), "': no same_host; expected it for ", ranks_per_host,
               " ranks of a host (calibrate under mpirun -np 2), or --ranks_per_host=1"));
  }
  if (ranks > ranks_per_host && !machine_->has_other_host()) {
    return UserError(StrCat("machine '", machine_->name(), "': no other_host; ", ranks,
                            " ranks need ", (ranks - 1) / ranks_per_host + 1,
                            " hosts: expected it, or fewer ranks, or --ranks_per_host"));
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::span<const SparseBatch> batches, BatchesOf(batch_rows));
  const SparseBatch& batch = batches.front();
  const EmbeddingLayout layout(model_->tables, model_->fields);
  const int64_t leaves = experiment_->parallel().virtual_shards();
  const ParallelConfig& parallel = experiment_->parallel();
  const RankHosts in_order = RankHosts::InOrder(ranks, ranks_per_host);
  const RankHosts* const hosts =
      parallel.by_host() && GoesByHost(in_order, ranks, leaves) ? &in_order : nullptr;
  const bool early = parallel.overlap() && parallel.first_ids_first() &&
                     HasEarlyRows(plan, static_cast<int>(layout.tables()),
                                  MakeSparseOptimizer(experiment_->optimizer()).rule.kind, hosts);
  ELASTOR_ASSIGN_OR_RETURN(
      const JobDemand demand,
      CountDemand(batch, early ? &batches.back() : nullptr, layout, plan, leaves, hosts));
  StepModel step;
  step.work = &work_;
  step.graph = &graph_;
  step.options = MakeTrainStepOptions(*experiment_, *info_);
  const auto buckets = graph_.parameters().buckets();
  step.shape = {.ranks = ranks,
                .leaves = leaves,
                .buckets = {buckets.begin(), buckets.end()},
                .overlap = step.options.overlap,
                .late_weights = !machine_->gpus() && WeightsComeLate(step.options, graph_, ranks),
                .sample_weights = step.options.sample_weights,
                .batch_losses = step.options.task.batch_losses(),
                .scalar_words = ScalarWords(model_->tables),
                .wire = MakeWireFormats(experiment_->parallel()),
                .hosts = hosts};
  step.gpus = machine_->gpus();
  step.threads = threads;
  step.width = TableWidth(*experiment_);
  step.ranks_per_host = ranks_per_host;
  const StepProgram program = MakeStepProgram(step, demand, kSteps);
  const SimResult result = Simulate(*machine_, program.job);
  if (result.endless) {
    return UserError(StrCat("machine '", machine_->name(), "': steps take more than ",
                            Format("%g", kLongestJobSeconds),
                            " seconds; expected larger rates or shorter times in its file"));
  }

  Prediction prediction;
  prediction.ranks = ranks;
  prediction.ranks_per_host = ranks_per_host;
  prediction.batch_rows = batch.rows;
  const std::vector<double>& marks = result.marks[0];
  const auto at = [&](int mark) { return marks[program.MarkOf(kSteps - 1, mark)]; };
  prediction.step_seconds = at(StepProgram::kEnd) - at(0);
  for (int p = 0; p < kStepParts; ++p) prediction.part_seconds[p] = at(p + 1) - at(p);
  prediction.rank0_sent = program.rank0_sent;
  prediction.all_sent = program.all_sent;
  prediction.between_hosts = program.between_hosts;
  SplitCommunication(program, result, &prediction);
  FindSlowest(program, &prediction);
  return prediction;
}

std::vector<std::string> Predictor::Warnings() const {
  std::vector<std::string> warnings;
  if (!machine_->build().empty() && machine_->build() != BuildName()) {
    warnings.push_back("the machine was measured by another build, " + machine_->build() +
                       "; calibrate again");
  }
  if (!machine_->build().empty() && measured_share() < 1) {
    warnings.push_back(
        "the machine was not measured with this model: kernels without times are "
        "derived from multiply_adds_per_s and memory_bytes_per_s");
  }
  if (const std::string with = MeasuredWith(*experiment_);
      !machine_->measured_with().empty() && machine_->measured_with() != with) {
    warnings.push_back("the machine was measured with " + machine_->measured_with() +
                       ", and this process has " + with +
                       "; calibrate again, unless the job has the former");
  }
  if (machine_->gpus()) {
    warnings.push_back(
        "machines with GPUs play the messages of the CPU's step (docs/use/costs.md)");
  }
  if (std::ranges::any_of(model_->tables, &TableSpec::keyed)) {
    warnings.push_back("passes that remove rows of keyed tables are not predicted");
  }
  return warnings;
}

StatusOr<Json> PredictionJson(Predictor* predictor, const Experiment& experiment,
                              const Machine& machine, const DatasetInfo& info, int ranks,
                              int ranks_per_host) {
  const int64_t batch_rows = experiment.training().batch_size();
  const int plan = experiment.parallel().plan();
  const bool planned = plan == ParallelConfig::PLANNED;
  ELASTOR_ASSIGN_OR_RETURN(const PlanSearch plans,
                           planned ? predictor->SearchPlan(ranks, ranks_per_host, batch_rows)
                                   : predictor->ComparePlans(ranks, ranks_per_host, batch_rows));
  if (!planned && !plans.simple[plan]) {
    return MakePlan(experiment, predictor->tables(), ranks).status();
  }
  const Prediction& found = planned ? plans.prediction : *plans.simple[plan];
  Json parts;
  for (int p = 0; p < kStepParts; ++p) {
    parts[StepPartName(static_cast<StepPart>(p))] = found.part_seconds[p];
  }
  const int hosts = (ranks - 1) / found.ranks_per_host + 1;
  Json json = {
      {"machine", machine.name()},
      {"hosts", hosts},
      {"ranks_per_host", found.ranks_per_host},
      {"ids", experiment.data().path().empty() ? "uniform" : "first batch of the data set"},
      {"batch_rows", found.batch_rows},
      {"step_seconds", found.step_seconds},
      {"samples_per_s", found.samples_per_s()},
      {"rank0_part_seconds", parts},
      {"rank0_communication_seconds",
       {{"hidden", found.hidden_seconds}, {"exposed", found.exposed_seconds}}},
      {"rank0_messages_sent", found.rank0_sent.messages},
      {"rank0_bytes_sent", found.rank0_sent.bytes},
      {"all_messages_sent", found.all_sent.messages},
      {"all_bytes_sent", found.all_sent.bytes},
      {"messages_between_hosts", found.between_hosts.messages},
      {"bytes_between_hosts", found.between_hosts.bytes},
      {"slowest_rank",
       {{"rank", found.slowest_rank},
        {"work_seconds", found.slowest_work},
        {"mean_work_seconds", found.mean_work},
        {"most_excess_in", StepPartName(found.slowest_part)}}},
      {"kernels_measured", predictor->measured_share()},
  };
  if (!experiment.data().path().empty()) {
    ELASTOR_ASSIGN_OR_RETURN(const int64_t rows, TrainingRows(experiment, info));
    const double seconds = static_cast<double>(rows) / found.samples_per_s();
    json["epoch_seconds"] = seconds;
    if (machine.host_hour_price() > 0) {
      json["epoch_price"] = machine.host_hour_price() * hosts * seconds / 3600;
    }
  }
  const auto name = [](int plan) {
    return ParallelConfig::Plan_Name(static_cast<ParallelConfig::Plan>(plan));
  };
  Json& of_plans = json["step_seconds_of_plans"];
  for (int plan = 0; plan < kSimplePlans; ++plan) {
    const std::optional<Prediction>& other = plans.simple[plan];
    of_plans[name(plan)] = other ? Json(other->step_seconds) : Json(nullptr);
  }
  if (planned) of_plans[name(ParallelConfig::PLANNED)] = found.step_seconds;
  json["warnings"] = predictor->Warnings();
  return json;
}

StatusOr<Scaling> PredictScaling(Predictor* predictor, const Experiment& experiment, int ranks,
                                 int ranks_per_host) {
  const int64_t whole = experiment.training().batch_size();
  Scaling scaling;
  for (const bool weak : {false, true}) {
    for (int n = 1;; n = std::min(2 * n, ranks)) {
      const int64_t rows = weak ? std::max<int64_t>(1, whole * n / ranks) : whole;
      ELASTOR_ASSIGN_OR_RETURN(Prediction found, predictor->Predict(n, ranks_per_host, rows));
      (weak ? scaling.weak : scaling.strong).push_back(found);
      if (n == ranks) break;
    }
  }
  return scaling;
}

std::string ScalingTable(const Scaling& scaling) {
  std::string text =
      "  ranks     batch   step (ms)    samples/s  of linear  exposed  messages of rank 0\n";
  for (const auto* lines : {&scaling.strong, &scaling.weak}) {
    text += lines == &scaling.strong ? "strong scaling: the whole batch\n"
                                     : "weak scaling: the batch grows with the ranks\n";
    for (const Prediction& found : *lines) {
      const double linear = lines->front().samples_per_s() * found.ranks;
      char line[160];
      std::snprintf(line, sizeof line, "%7d %9lld %11.3f %12.0f %9.0f %% %6.0f %% %19lld\n",
                    found.ranks, static_cast<long long>(found.batch_rows), found.step_seconds * 1e3,
                    found.samples_per_s(), 100 * found.samples_per_s() / linear,
                    100 * found.exposed_seconds / found.step_seconds,
                    static_cast<long long>(found.rank0_sent.messages));
      text += line;
    }
  }
  return text;
}

std::string ScalingPicture(const Scaling& scaling, const std::string& machine) {
  LineChart chart;
  chart.title = "Predicted samples/s";
  chart.subtitle = machine;
  chart.x = {.title = "ranks", .logarithmic = true};
  chart.y = {.title = "samples/s", .logarithmic = true, .prefixes = true};
  const auto add = [&](const std::string& name, const std::vector<Prediction>& lines) {
    ChartSeries& series = chart.series.emplace_back();
    series.name = name;
    for (const Prediction& found : lines) {
      series.points.push_back({.x = static_cast<double>(found.ranks), .y = found.samples_per_s()});
    }
  };
  add("strong scaling", scaling.strong);
  add("weak scaling", scaling.weak);
  return ToSvg(chart);
}

}  // namespace elastor
