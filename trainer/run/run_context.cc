#include "trainer/run/run_context.h"

#include <algorithm>
#include <utility>

#include "core/base/host_memory.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/graph/per_sample.h"
#include "core/kernels/cpu/isa.h"
#include "core/process/build_info.h"
#include "embedding/sharded_embedding.h"
#include "trainer/data/block_format.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/memory_plan.h"
#include "trainer/run/memory_check.h"

namespace elastor {
namespace {

// The experiment that memory is planned and taken for.
Experiment ForMode(const RunOptions& options) {
  return options.trains() ? options.experiment : ForInference(options.experiment);
}

StatusOr<std::unique_ptr<Dataset>> OpenDataset(const std::string& path, Split split) {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, Dataset::Open(path));
  if (dataset->rows(split) > 0) return dataset;
  const std::string name = split == Split::kTrain ? "training" : SplitName(split);
  return UserError(path + ": the " + name + " split has no rows");
}

// CheckMemory of the run that `planned` describes.
StatusOr<std::string> CheckMemoryOf(const RunOptions& options, const Experiment& planned,
                                    const Dataset& dataset, const Graph& graph,
                                    const ShardPlan& plan, const RankHosts& hosts,
                                    Communicator* communicator) {
  const bool on_device = options.device == RunDevice::kCuda;
  MemoryPlan::Options memory = {.trains = options.trains(), .on_device = on_device};
  for (int host = 0; host < hosts.hosts(); ++host) {
    memory.ranks_per_host =
        std::max(memory.ranks_per_host, static_cast<int>(hosts.RanksOf(host).size()));
  }
  if (memory.trains) {
    memory.occurring_ids = OccurringIds(planned.data().path(), dataset.info());
  } else {
    memory.ntk_rows = options.ntk_rows;
    memory.ntk_split = options.split;
    // A thousand ranks would ask a file system for one folder.
    if (communicator->rank() == 0 && !options.model_dir.empty()) {
      memory.model_rows = RowsOfModel(options.model_dir, TableWidth(planned));
    }
    ELASTOR_RETURN_IF_ERROR(communicator->Broadcast(Phase::kSetup, &memory.model_rows,
                                                    sizeof(memory.model_rows), /*root=*/0));
  }
  return CheckMemory(MemoryPlan(planned, dataset.info(), &graph, memory), plan,
                     on_device ? CudaDeviceBytes() : 0, communicator);
}

SliceOptions MakeSliceOptions(const EvaluationConfig& config) {
  return {{config.slice_by().begin(), config.slice_by().end()}, config.slice_values()};
}

RunLog::Use UseOfLog(const RunOptions& options) {
  if (!options.trains()) return RunLog::Use::kInference;
  return options.resume ? RunLog::Use::kResumedTraining : RunLog::Use::kTraining;
}

// That any model can reach, where the data set knows it.
std::optional<double> BestAuc(const DatasetInfo& data, const Task::Label& label) {
  const double best = data.labels.empty() ? data.best_auc : data.labels[label.column].best_auc;
  return best < 0 ? std::nullopt : std::optional<double>(best);
}

// What the phases that were used took, between hosts and between devices. Rank 0's records.
StatusOr<std::vector<CommunicationRecord>> CommunicationRecords(Communicator& communicator,
                                                                Backend& backend) {
  std::vector<CommunicationRecord> records;
  std::vector<int64_t> sent;  // all entries: ranks must reduce equally many
  for (int w = 0; w < static_cast<int>(Work::kCount); ++w) {
    for (int p = 0; p < static_cast<int>(Phase::kCount); ++p) {
      const auto work = static_cast<Work>(w);
      const auto phase = static_cast<Phase>(p);
      PhaseRecord sum = communicator.record(phase, work);
      sum += backend.device_record(phase, work);
      records.push_back({PhaseName(phase), WorkName(work), sum.calls, sum.messages_sent,
                         sum.bytes_sent, sum.seconds});
      sent.insert(sent.end(), {sum.messages_sent, sum.bytes_sent, sum.messages_between_hosts,
                               sum.bytes_between_hosts});
    }
  }
  const ShardedEmbedding<float>* const embedding = backend.host_embedding();
  const auto rows =
      embedding == nullptr ? ShardedEmbedding<float>::SentRows{} : embedding->sent_rows();
  sent.insert(sent.end(), {rows.early, rows.all});
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kMetrics, sent));
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].all_messages = sent[4 * i];
    records[i].all_bytes = sent[4 * i + 1];
    records[i].messages_between_hosts = sent[4 * i + 2];
    records[i].bytes_between_hosts = sent[4 * i + 3];
    if (records[i].phase != PhaseName(Phase::kEarlyRows)) continue;
    records[i].rows_share = static_cast<double>(sent.end()[-2]) /
                            static_cast<double>(std::max<int64_t>(1, sent.back()));
  }
  std::erase_if(records, [](const CommunicationRecord& record) { return record.calls == 0; });
  return records;
}

}  // namespace

StatusOr<std::unique_ptr<RunContext>> RunContext::Open(const RunOptions& options,
                                                       int64_t steps_done,
                                                       Communicator* communicator,
                                                       std::optional<ClaimedFolder> claimed) {
  if (options.device == RunDevice::kCuda && WritesDeltas(ForMode(options).checkpoint())) {
    return UserError(
        "checkpoint: delta checkpoints are a choice on the CPU (--device=cpu); expected "
        "delta_every_steps and delta_every_minutes 0");
  }
  if (const std::string& path = ForMode(options).embedding().tier().path();
      options.device == RunDevice::kCuda && !path.empty()) {
    return UserError("embedding.tier.path: " + path +
                     ": rows in files are a choice on the CPU (--device=cpu); expected none, or "
                     "parallel.device_embedding_bytes");
  }
  StatusOr<std::unique_ptr<Dataset>> dataset = OpenDataset(
      options.experiment.data().path(), options.trains() ? Split::kTrain : options.split);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, dataset.status()));
  if (options.device == RunDevice::kCuda && (*dataset)->info().has_keys()) {
    return UserError(options.experiment.data().path() +
                     ": has fields with keys, whose tables are on the CPU; expected --device=cpu");
  }
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnText(*communicator, "the data set's fingerprint", (*dataset)->fingerprint()));
  const bool first_rank = communicator->rank() == 0;
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnStatus(*communicator, first_rank ? (*dataset)->VerifyOtherFiles() : OkStatus()));
  const Experiment planned = ForMode(options);
  ELASTOR_ASSIGN_OR_RETURN(ResolvedModel model, ResolveModel(planned, (*dataset)->info()));
  if (options.trains() || options.split == Split::kTrain) {
    ELASTOR_RETURN_IF_ERROR(TrainingRows(options.experiment, (*dataset)->info()).status());
  }
  ELASTOR_RETURN_IF_ERROR(
      ValidateSlices(MakeSliceOptions(options.experiment.evaluation()), (*dataset)->info()));
  PlannedTables tables;
  if (options.trains() && planned.parallel().plan() == ParallelConfig::PLANNED) {
    ELASTOR_ASSIGN_OR_RETURN(tables, PlanTables(planned, model, **dataset, communicator));
  }
  ELASTOR_ASSIGN_OR_RETURN(
      ShardPlan plan, MakePlan(planned, model.tables, communicator->size(), tables.placements));
  ELASTOR_ASSIGN_OR_RETURN(RankHosts hosts, FindHosts(*communicator));
  ELASTOR_ASSIGN_OR_RETURN(
      const std::string memory_warning,
      CheckMemoryOf(options, planned, **dataset, model.graph, plan, hosts, communicator));
  StatusOr<std::unique_ptr<RunLog>> log =
      RunLog::Open(options.output_dir, options.experiment, communicator->rank(), UseOfLog(options),
                   steps_done, std::move(claimed),
                   StrCat("mode ", options.mode, ", model ", options.model_dir, ", split ",
                          SplitName(options.split)));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, log.status()));
  if (!memory_warning.empty()) (*log)->ShowLine(memory_warning);
  if (first_rank && (*dataset)->version() < kPreparedVersion) {
    LOG(WARNING)
        << options.experiment.data().path() << ": version " << (*dataset)->version()
        << " of the format, whose meta.json has no hash; prepare again for more protection";
  }
  auto context = std::make_unique<RunContext>(options, communicator, std::move(dataset).value(),
                                              std::move(model), std::move(tables), std::move(plan),
                                              std::move(log).value());
  ELASTOR_RETURN_IF_ERROR(context->MakeBackend(options, std::move(hosts)));
  return context;
}

RunContext::RunContext(const RunOptions& options, Communicator* communicator,
                       std::unique_ptr<Dataset> dataset, ResolvedModel model, PlannedTables planned,
                       ShardPlan plan, std::unique_ptr<RunLog> log)
    : experiment(options.experiment),
      numerics(options.numerics),
      tensorboard(options.tensorboard),
      communicator(communicator),
      dataset(std::move(dataset)),
      planned(std::move(planned)),
      plan(std::move(plan)),
      log(std::move(log)),
      model(std::move(model)),
      pool(experiment.parallel().threads()) {}

Status RunContext::BeginLog() {
  return AgreeOnStatus(*communicator,
                       log->Begin(plan.ToString() + planned.report, tensorboard, planned.machine));
}

Status RunContext::MakeBackend(const RunOptions& options, RankHosts hosts) {
  const BackendOptions backend_options = {.experiment = ForMode(options),
                                          .data = &dataset->info(),
                                          .plan = &plan,
                                          .graph = &model.graph,
                                          .communicator = communicator,
                                          .pool = &pool,
                                          .hosts = std::move(hosts)};
  ELASTOR_ASSIGN_OR_RETURN(backend_, options.device == RunDevice::kCuda
                                         ? MakeCudaBackend(backend_options)
                                         : MakeCpuBackend(backend_options));
  evaluation_.emplace(dataset.get(), &model.graph, backend_->step(), communicator,
                      Evaluation::Options{.task = model.task,
                                          .leaves = experiment.parallel().virtual_shards(),
                                          .batch_rows = experiment.training().eval_batch_size(),
                                          .train_rows = experiment.data().train_rows(),
                                          .slices = MakeSliceOptions(experiment.evaluation()),
                                          .dataset_path = experiment.data().path(),
                                          .weighted = experiment.training().monitor().weighted(),
                                          .unit_tokens = experiment.spectrum().unit_tokens()});
  return OkStatus();
}

CheckpointMetadata RunContext::MakeMetadata(Contents contents, const ControlRecord& control) const {
  CheckpointMetadata metadata;
  metadata.contents = contents;
  metadata.control = control;
  if (contents == Contents::kWeights) metadata.control.clear_spectrum_pending();  // is of states
  metadata.build = BuildName();
  metadata.numerics = numerics;
  metadata.model_hash = MakeModelHash(Identity());
  metadata.numeric_hash = NumericHash(experiment);
  metadata.experiment = ExperimentText(experiment);
  metadata.data = dataset->fingerprint();
  metadata.encoding = EncodingOf(dataset->info());
  return metadata;
}

StatusOr<EvalRecord> RunContext::Evaluate(Split split, const Evaluation::Predicted& predicted) {
  communicator->Enter(Activity::kEvaluate);
  ELASTOR_ASSIGN_OR_RETURN(std::vector<MetricValues> labels,
                           evaluation_->Measure(split, predicted));
  return MakeEvalRecord(split, evaluation_->rows(split), std::move(labels));
}

StatusOr<EvalRecord> RunContext::EvaluateTrainingRows() {
  communicator->Enter(Activity::kEvaluate);
  const int64_t count = experiment.evaluation().train_rows();
  ELASTOR_ASSIGN_OR_RETURN(std::vector<MetricValues> labels,
                           evaluation_->MeasureTrainingRows(count));
  const int64_t rows = dataset->rows(Split::kTrain, evaluation_->training_order(count));
  return MakeEvalRecord(Split::kTrain, rows, std::move(labels));
}

EvalRecord RunContext::MakeEvalRecord(Split split, int64_t rows, std::vector<MetricValues> labels) {
  EvalRecord record;
  record.labels = std::move(labels);
  record.split = SplitName(split);
  record.step = step().steps();
  record.rows = rows;
  record.metrics = record.labels[MonitoredLabel(experiment, model.task)];
  if (record.metrics.ungrouped_rows > 0 && !std::exchange(told_of_ungrouped_, true)) {
    log->ShowLine(StrCat(record.split, ": ", record.metrics.ungrouped_rows, " of ", record.rows,
                         " rows have no group; gAUC leaves them out"));
  }
  if (record.labels.size() == 1) record.labels.clear();
  return record;
}

Status RunContext::CheckNtk() const {
  if (backend_->host_embedding() == nullptr) {
    return UserError("the neural tangent kernel is computed on the CPU; expected --device=cpu");
  }
  return CheckPerSampleGradients(model.graph);
}

StatusOr<NtkMeasurement> RunContext::MeasureNtk(Split split, int64_t rows,
                                                const NtkKernelVisit& kernel) {
  const NtkModel ntk = {.graph = &model.graph,
                        .weights = step().weights(),
                        .fields = model.fields,
                        .embedding = backend_->host_embedding(),
                        .leaves = experiment.parallel().virtual_shards()};
  ELASTOR_ASSIGN_OR_RETURN(NtkMeasurement measured,
                           elastor::MeasureNtk(ntk, *dataset, split, evaluation_->order(split),
                                               rows, kernel, communicator, &pool));
  for (NtkRecord& record : measured.records) record.step = step().steps();
  return measured;
}

ProjectionModel RunContext::HeadModel() const {
  return {.graph = &model.graph,
          .weights = step().weights(),
          .task = model.task,
          .grouped = dataset->info().has_groups};
}

Status RunContext::LogScoring(int64_t step) {
  if (communicator->rank() != 0) return OkStatus();  // the others have no log
  std::optional<ScoringRecord> record = MeasureScoring(HeadModel());
  if (!record) return OkStatus();
  record->step = step;
  return log->Append(*record);
}

void RunContext::AddEvaluation(const EvalRecord& record, Summary* summary) const {
  summary->split = record.split;
  summary->rows = record.rows;
  summary->unlabelled = record.metrics.rows == 0;
  summary->metrics = record.metrics;
  summary->metrics.slices.clear();
  // The teacher's are bounds for rows that the model did not learn.
  const bool learned = record.split == SplitName(Split::kTrain);
  if (learned) summary->best_auc = summary->best_gauc = std::nullopt;
  for (size_t i = 0; i < record.labels.size(); ++i) {
    Summary::Label& label = summary->labels.emplace_back();
    label.metrics = record.labels[i];
    label.metrics.slices.clear();
    if (!learned) label.best_auc = BestAuc(dataset->info(), model.task.learned[i]);
  }
}

StatusOr<Summary> RunContext::MakeSummary() {
  Summary summary;
  summary.name = experiment.name();
  summary.best_auc =
      BestAuc(dataset->info(), model.task.learned[MonitoredLabel(experiment, model.task)]);
  if (dataset->info().best_gauc >= 0) summary.best_gauc = dataset->info().best_gauc;
  summary.ranks = communicator->size();
  summary.virtual_shards = experiment.parallel().virtual_shards();
  summary.dense_parameters = model.graph.parameters().element_count();
  for (const TableSpec& table : model.tables) {
    if (!table.counts()) summary.embedding_parameters += table.rows * table.width;
  }
  summary.build = BuildName();
  summary.numerics = numerics;
  summary.isa = IsaName(ActiveIsa());
  summary.numeric_hash = NumericHash(experiment);
  ELASTOR_ASSIGN_OR_RETURN(summary.communication, CommunicationRecords(*communicator, *backend_));
  summary.wall_s = SecondsSince(start);
  summary.peak_memory_bytes = PeakMemoryBytes();
  return summary;
}

}  // namespace elastor
