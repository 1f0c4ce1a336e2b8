#include "trainer/experiment/make_options.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/models/models.h"
#include "embedding/admission.h"
#include "embedding/row_store.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/sequences.h"

namespace elastor {
namespace {

OptimizerKind SparseKind(OptimizerConfig_Sparse kind) {
  switch (kind) {
    case OptimizerConfig_Sparse_DENSE_ADAM:
      return OptimizerKind::kDenseAdam;
    case OptimizerConfig_Sparse_ROW_WISE_ADAGRAD:
      return OptimizerKind::kRowWiseAdagrad;
    case OptimizerConfig_Sparse_SPARSE_ADAGRAD:
      return OptimizerKind::kAdagrad;
    case OptimizerConfig_Sparse_SPARSE_SGD:
      return OptimizerKind::kSgd;
    default:
      return OptimizerKind::kLazyAdam;
  }
}

OptimizerKind DenseKind(OptimizerConfig_Dense kind) {
  if (kind == OptimizerConfig_Dense_SGD) return OptimizerKind::kSgd;
  if (kind == OptimizerConfig_Dense_ADAGRAD) return OptimizerKind::kAdagrad;
  return OptimizerKind::kDenseAdam;
}

OptimizerOptions MakeRule(const OptimizerConfig& config, OptimizerKind kind) {
  return {.kind = kind,
          .beta1 = config.beta1(),
          .beta2 = config.beta2(),
          .epsilon = config.epsilon(),
          .initial_accumulator = config.initial_accumulator()};
}

PlanKind PlanKindOf(ParallelConfig_Plan plan) {
  switch (plan) {
    case ParallelConfig_Plan_ROW_WISE:
      return PlanKind::kRowWise;
    case ParallelConfig_Plan_TABLE_WISE:
      return PlanKind::kTableWise;
    case ParallelConfig_Plan_REPLICATED:
      return PlanKind::kReplicated;
    default:
      return PlanKind::kAuto;
  }
}

}  // namespace

namespace {

// Whether model and data agree on images.
Status CheckImages(const Experiment& experiment, const DatasetInfo::Image& image) {
  const ModelConfig& model = experiment.model();
  if (image.height == 0) {
    if (!IsOfImages(model)) return OkStatus();
    return UserError("model: one of images; expected data of layout IDX, or another model");
  }
  if (experiment.embedding().width() != 1) {
    return UserError(StrCat("embedding.width: found ", experiment.embedding().width(),
                            "; expected 1, as the data are images and a pixel is one number"));
  }
  const int64_t patch = PatchOf(model);
  if (image.height % patch == 0 && image.width % patch == 0) return OkStatus();
  return UserError(StrCat("model.", model.has_vit() ? "vit" : "mlp_mixer", ".patch: found ", patch,
                          "; expected a divisor of both sides of an image, ", image.height, " and ",
                          image.width, " pixels"));
}

// Labels of classes are learned all together.
StatusOr<Task> ClassTask(const Experiment& experiment, const DatasetInfo& data) {
  const auto refuse = [](const std::string& field, const std::string& expected) {
    return UserError(field + ": the data's labels are classes; expected " + expected);
  };
  if (!experiment.task().labels().empty()) return refuse("task.labels", "none");
  if (!experiment.task().weights().empty()) return refuse("task.weights", "none");
  if (!experiment.evaluation().slice_by().empty()) return refuse("evaluation.slice_by", "none");
  if (experiment.training().monitor().metric() != MonitorConfig::LOGLOSS) {
    return refuse("training.monitor.metric", "LOGLOSS");
  }
  if (HasOneLogit(experiment.model()) || experiment.model().has_esmm()) {
    return refuse("model", "a model of any number of outputs");
  }
  Task task = {.kind = Task::Kind::kClasses,
               .classes = data.classes,
               .row_labels = data.label_count(),
               .learned = {}};
  for (int64_t i = 0; i < task.row_labels; ++i) {
    task.learned.push_back({data.labels.empty() ? "" : data.labels[i].name, i});
  }
  return task;
}

}  // namespace

StatusOr<Task> MakeTask(const Experiment& experiment, const DatasetInfo& data) {
  if (data.numeric_count() == 0 && data.categorical.empty()) {
    return UserError("data: no field; expected one at least");
  }
  const bool of_bytes =
      experiment.model().has_matrix_thinker() || experiment.model().has_transformer();
  const bool bytes = data.classes > 0 && data.numeric.empty() && data.labels.size() > 1 &&
                     data.labels.size() == data.categorical.size();
  if (of_bytes && !bytes) {
    return UserError("model: a language model; expected data of layout TEXT, or another model");
  }
  ELASTOR_RETURN_IF_ERROR(CheckImages(experiment, data.image));
  if (ReadsPairs(experiment.model()) && data.numeric_count() + data.categorical.size() < 2) {
    return UserError("model: one of pairs of fields; expected two fields at least");
  }
  if (experiment.model().dlrm().interaction() == DlrmConfig::DOT && experiment.model().has_dlrm() &&
      data.categorical.size() + (data.numeric_count() > 0 ? 1 : 0) < 2) {
    return UserError(
        "model.dlrm: DOT multiplies embeddings with the numeric fields' network or with each "
        "other; expected "
        "two categorical fields, or one beside numeric fields");
  }
  if (data.classes > 0) return ClassTask(experiment, data);
  const TaskConfig& config = experiment.task();
  const auto expected = [&] {
    std::string names;
    for (const auto& label : data.labels) names += (names.empty() ? "" : ", ") + label.name;
    return "; expected " +
           (names.empty() ? "none, as the data has one label, without a name" : "of " + names);
  };
  Task task;
  task.row_labels = data.label_count();
  if (config.labels().empty() && !data.labels.empty()) {
    task.learned.clear();
    for (const auto& label : data.labels) task.learned.push_back({label.name, task.losses()});
  }
  if (!config.labels().empty()) task.learned.clear();
  for (const std::string& name : config.labels()) {
    const auto at = std::ranges::find(data.labels, name, &DatasetInfo::Label::name);
    if (at == data.labels.end()) return UserError("task.labels: " + name + expected());
    if (std::ranges::count(config.labels(), name) > 1) {
      return UserError("task.labels: " + name + " stands there twice; expected every name once");
    }
    task.learned.push_back({name, at - data.labels.begin()});
  }
  if (!config.weights().empty() && config.weights_size() != task.outputs()) {
    return UserError(StrCat("task.weights: ", config.weights_size(),
                            " numbers; expected one for each of ",
                            CountText(task.outputs(), "label")));
  }
  for (int i = 0; i < config.weights_size(); ++i) task.learned[i].weight = config.weights(i);
  if (task.outputs() > 1 && HasOneLogit(experiment.model())) {
    return UserError(StrCat("task.labels: ", task.outputs(),
                            " are learned; expected one, as model.",
                            ChosenModel(experiment.model())->name(), " has one logit",
                            HasFirstOrder(experiment.model()) ? " (first-order weights)" : ""));
  }
  if (experiment.model().has_esmm() && task.outputs() != 2) {
    return UserError(StrCat("task.labels: ", task.outputs(),
                            " learned; expected two for model.esmm, a click and a conversion"));
  }
  if (experiment.model().has_final_net()) task.students = 2;
  if (experiment.model().has_dcn_v3()) task.branches = 2;
  const std::string& monitored = experiment.training().monitor().label();
  if (monitored.empty() || MonitoredLabel(experiment, task) >= 0) return task;
  return UserError("training.monitor.label: " + monitored +
                   (data.labels.empty() ? expected() : "; expected a label that is learned"));
}

int64_t MonitoredLabel(const Experiment& experiment, const Task& task) {
  const std::string& name = experiment.training().monitor().label();
  if (name.empty()) return 0;
  const auto at = std::ranges::find(task.learned, name, &Task::Label::name);
  return at == task.learned.end() ? -1 : at - task.learned.begin();
}

std::vector<SequenceShape> MakeSequences(const Experiment& experiment, const DatasetInfo& data) {
  StatusOr<std::vector<SequenceShape>> sequences = FindSequences(experiment, data);
  CHECK(sequences.ok()) << sequences.status().message();
  return std::move(sequences).value();
}

Graph MakeGraph(const Experiment& experiment, const DatasetInfo& data) {
  const std::vector<SequenceShape> sequences = MakeSequences(experiment, data);
  return MakeModel(experiment.model(),
                   {.numeric_fields = data.numeric_count(),
                    .categorical_fields = static_cast<int64_t>(data.categorical.size()),
                    .embedding_width = experiment.embedding().width(),
                    .embedding_stddev = experiment.embedding().init_stddev(),
                    .sequences = sequences,
                    .request_fields = FindRequestFields(experiment, data, sequences).value(),
                    .first_order = HasFirstOrder(experiment.model()),
                    .image = {data.image.height, data.image.width, PatchOf(experiment.model())}},
                   MakeTask(experiment, data).value().graph_outputs());
}

int64_t TableWidth(const Experiment& experiment) {
  return experiment.embedding().width() + (HasFirstOrder(experiment.model()) ? 1 : 0);
}

namespace {

RowRules::Policy PolicyOf(EvictionConfig::Policy policy) {
  switch (policy) {
    case EvictionConfig::LRU:
      return RowRules::Policy::kLru;
    case EvictionConfig::LFU:
      return RowRules::Policy::kLfu;
    case EvictionConfig::DECAYED_LFU:
      return RowRules::Policy::kDecayedLfu;
    case EvictionConfig::TTL_STEPS:
      return RowRules::Policy::kTtlSteps;
    case EvictionConfig::L2:
      return RowRules::Policy::kL2;
    case EvictionConfig::TTL_EVENT_TIME:
      return RowRules::Policy::kTtlEventTime;
    default:
      return RowRules::Policy::kNone;
  }
}

}  // namespace

RowRules RulesOf(const EmbeddingConfig& embedding, const std::string& field) {
  for (const TableConfig& table : embedding.tables()) {
    if (std::ranges::count(table.fields(), field) == 0) continue;
    const EvictionConfig& eviction = table.eviction();
    const AdmissionConfig& admission = table.admission();
    constexpr int64_t kCountersOfLines = kPartitions * kSketchLine;
    return {.policy = PolicyOf(eviction.policy()),
            .capacity = table.capacity(),
            .evicts_when_full = table.on_full() == TableConfig::EVICT,
            .evict_to = eviction.evict_to(),
            .evict_every_steps = table.evict_every_steps(),
            .ttl_steps = eviction.ttl_steps(),
            .ttl_seconds = eviction.ttl_seconds(),
            .half_life_steps = eviction.half_life_steps(),
            .min_l2 = eviction.min_l2(),
            .min_count = std::max<int64_t>(admission.min_count(), 1),
            .sketch_lines = (admission.sketch_counters() + kCountersOfLines - 1) / kCountersOfLines,
            .shares_rows = table.unadmitted() == TableConfig::SHARED_ROW,
            .count_ttl_steps = admission.count_ttl_steps()};
  }
  return {};
}

std::vector<TableSpec> MakeTables(const Experiment& experiment, const DatasetInfo& data) {
  std::vector<TableSpec> tables;
  for (const auto& field : data.categorical) {
    if (field.shares >= 0) continue;
    TableSpec& table = tables.emplace_back(TableSpec{field.name, field.ids, TableWidth(experiment),
                                                     experiment.embedding().init_stddev()});
    if (!field.keyed) continue;
    table.keyed = true;
    table.rules = RulesOf(experiment.embedding(), field.name);
    table.keeps_use = table.rules.keeps_use();
    table.rows = table.rules.capacity;
  }
  return WithAdmission(std::move(tables));
}

Status CheckKeyedTables(const Experiment& experiment, const DatasetInfo& data) {
  std::string keyed;
  for (const auto& field : data.categorical) {
    if (field.keyed && field.shares < 0) keyed += (keyed.empty() ? "" : ", ") + field.name;
  }
  std::vector<std::string> named;
  for (const TableConfig& table : experiment.embedding().tables()) {
    for (const std::string& name : table.fields()) {
      const auto field = std::ranges::find(data.categorical, name, &DatasetInfo::Categorical::name);
      const bool has_table = field != data.categorical.end() && field->keyed && field->shares < 0;
      if (!has_table) {
        return UserError("embedding.tables: '" + name + "' is no field with a keyed table; " +
                         (keyed.empty() ? "the data has none (schema encodings HASHED_KEY and "
                                          "IDENTITY_KEY)"
                                        : "expected one of: " + keyed));
      }
      if (std::ranges::count(named, name) > 0) {
        return UserError("embedding.tables: field '" + name + "' stands there twice");
      }
      named.push_back(name);
    }
  }
  if (keyed.empty()) return OkStatus();
  for (const auto& field : data.categorical) {
    for (const char* suffix : {"/deleted", kSharedSuffix, kCountsSuffix, kSketchSuffix}) {
      if (!field.name.ends_with(suffix)) continue;
      return UserError("data.path: field '" + field.name +
                       "' beside keyed fields: checkpoints call parts of their tables so; "
                       "expected another name in the schema");
    }
  }
  if (experiment.optimizer().sparse() == OptimizerConfig::DENSE_ADAM) {
    return UserError(
        "optimizer.sparse: DENSE_ADAM updates rows that never occurred, and the data has keyed "
        "fields (" +
        keyed + "); expected LAZY_ADAM or another");
  }
  return OkStatus();
}

std::vector<FieldSpec> MakeFields(const Experiment& experiment, const DatasetInfo& data) {
  std::vector<FieldSpec> fields;
  int tables = 0;
  for (const auto& field : data.categorical) {
    const int table = field.shares >= 0 ? fields[field.shares].table : tables++;
    fields.push_back({field.name, table, field.mean_pooling ? Pooling::kMean : Pooling::kSum});
  }
  for (const SequenceShape& sequence : MakeSequences(experiment, data)) {
    if (sequence.pooled) {
      fields[sequence.field].pooling = Pooling::kMean;
    } else {
      fields.insert(fields.end(), sequence.positions,
                    {sequence.name, fields[sequence.field].table, Pooling::kSum});
    }
  }
  return fields;
}

bool WritesDeltas(const CheckpointConfig& config) {
  return !config.disabled() && (config.delta_every_steps() > 0 || config.delta_every_minutes() > 0);
}

int64_t StagingBytes(const Experiment& experiment) {
  const TierConfig& tier = experiment.embedding().tier();
  const int64_t bytes = experiment.checkpoint().staging_bytes();
  return tier.path().empty() ? bytes : std::min(bytes, tier.memory_bytes());
}

RowFormat PublishedRows(const PublishConfig& publish) {
  switch (publish.rows()) {
    case PublishConfig_Rows_INT8:
      return RowFormat::kInt8;
    case PublishConfig_Rows_INT4:
      return RowFormat::kInt4;
    default:
      return RowFormat::kFloat32;
  }
}

bool PublishesDeltas(const Experiment& experiment) {
  return !experiment.publish().path().empty() &&
         experiment.optimizer().sparse() != OptimizerConfig::DENSE_ADAM;
}

EmbeddingOptions MakeEmbeddingOptions(const Experiment& experiment, const DatasetInfo& data) {
  return {.tables = MakeTables(experiment, data),
          .fields = MakeFields(experiment, data),
          .optimizer = MakeSparseOptimizer(experiment.optimizer()),
          .seed = static_cast<uint64_t>(experiment.training().seed()),
          .leaves = experiment.parallel().virtual_shards(),
          .track_touched = WritesDeltas(experiment.checkpoint()),
          .track_unpublished = PublishesDeltas(experiment),
          .wire = MakeWireFormats(experiment.parallel())};
}

WireFormats MakeWireFormats(const ParallelConfig& config) {
  const auto format = [](WireConfig::Format format) {
    switch (format) {
      case WireConfig::FLOAT16:
        return WireFormat::kFloat16;
      case WireConfig::BFLOAT16:
        return WireFormat::kBFloat16;
      default:
        return WireFormat::kFloat32;
    }
  };
  return {.rows = format(config.wire().rows()), .gradients = format(config.wire().row_gradients())};
}

SparseOptimizerOptions MakeSparseOptimizer(const OptimizerConfig& config) {
  return {.rule = MakeRule(config, SparseKind(config.sparse())), .l2 = config.embedding_l2()};
}

Precision PrecisionOf(const TrainingConfig& training) {
  switch (training.precision()) {
    case TrainingConfig_Precision_TF32:
      return Precision::kTf32;
    case TrainingConfig_Precision_BFLOAT16:
      return Precision::kBFloat16;
    default:
      return Precision::kFloat32;
  }
}

TrainStepOptions MakeTrainStepOptions(const Experiment& experiment, const DatasetInfo& data) {
  const OptimizerConfig& optimizer = experiment.optimizer();
  TrainStepOptions options;
  options.task = MakeTask(experiment, data).value();
  options.leaves = experiment.parallel().virtual_shards();
  options.batch_rows = experiment.training().batch_size();
  options.sample_weights = data.has_weights;
  options.seed = experiment.training().seed();
  options.precision = PrecisionOf(experiment.training());
  options.clip_norm = optimizer.clip_norm();
  options.embedding_l2 = optimizer.embedding_l2();
  options.overlap = experiment.parallel().overlap();
  options.first_ids_first = experiment.parallel().first_ids_first();
  options.dense = {.rule = MakeRule(optimizer, DenseKind(optimizer.dense())),
                   .dense_l2 = optimizer.dense_l2(),
                   .embedding_l2 = optimizer.embedding_l2(),
                   .decoupled_decay = optimizer.decoupled_decay()};
  return options;
}

RowOrder MakeRowOrder(const Experiment& experiment) {
  RowOrder order;
  order.shuffled = experiment.data().order() == DataConfig_Order_SHUFFLED;
  order.seed = experiment.training().seed();
  order.window_blocks = experiment.data().window_blocks();
  order.first_rows = experiment.data().train_rows();
  return order;
}

StatusOr<int64_t> TrainingRows(const Experiment& experiment, const DatasetInfo& data) {
  const int64_t all = data.rows[static_cast<int>(Split::kTrain)];
  const int64_t rows = experiment.data().train_rows();
  if (experiment.data().path().empty()) return 0;
  if (rows <= all) return rows > 0 ? rows : all;
  return UserError(StrCat("data.train_rows: ", rows, "; expected at most the ", all,
                          " rows of the training split"));
}

StatusOr<ShardPlan> MakePlan(const Experiment& experiment, const std::vector<TableSpec>& tables,
                             int ranks, std::span<const Placement> planned) {
  const OptimizerKind kind = SparseKind(experiment.optimizer().sparse());
  std::vector<int64_t> bytes_per_row;
  for (const TableSpec& table : tables) {
    bytes_per_row.push_back(RowBytes(RowShapeOf(table, kind), sizeof(float)));
  }
  if (!planned.empty()) {
    return ShardPlan::Make(planned, tables, bytes_per_row, ranks,
                           experiment.parallel().memory_budget_bytes());
  }
  return ShardPlan::Make(PlanKindOf(experiment.parallel().plan()), tables, bytes_per_row, ranks,
                         experiment.parallel().memory_budget_bytes());
}

DatasetInfo AssumedData(const DataShape& shape) {
  constexpr int64_t kImageClasses = 10;
  DatasetInfo info;
  if (shape.text_length() > 0) info = ByteWindows(shape.text_length());
  if (shape.image_side() > 0) info = Images(shape.image_side(), shape.image_side(), kImageClasses);
  info.name = "assumed";
  if (info.classes > 0) return info;
  for (const std::string& label : shape.labels()) info.labels.push_back({label});
  for (int i = 0; i < shape.numeric_fields(); ++i) {
    info.numeric.push_back({StrCat("I", i + 1)});
  }
  for (int i = 0; i < shape.categorical_fields(); ++i) {
    info.categorical.push_back({StrCat("C", i + 1), shape.ids_per_field()});
  }
  for (int i = 0; i < shape.ids_of_fields_size(); ++i) {
    const bool one = i >= shape.bags_of_fields_size() || shape.bags_of_fields(i) == 1;
    info.categorical.push_back({.name = StrCat("C", info.categorical.size() + 1),
                                .ids = shape.ids_of_fields(i),
                                .multi_hot = !one});
  }
  return info;
}

}  // namespace elastor
