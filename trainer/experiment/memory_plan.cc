#include "trainer/experiment/memory_plan.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "collective/dense_reduce.h"
#include "collective/rank_hosts.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/leaf_stack.h"
#include "core/base/sizes.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/kernels/small_rows.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/row_store.h"
#include "embedding/waiting_rows.h"
#include "trainer/data/batch.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/step/thread_shares.h"

namespace elastor {
namespace {

constexpr char kStatisticsFile[] = "stats.json";
constexpr int64_t kElement = sizeof(float);
const int64_t kPageBytes = sysconf(_SC_PAGESIZE);

// Vectors at once of a thread that sums its leaves' gradients along the tree: a node of 2^d leaves
// has up to d of them, since a right leaf adds itself to its left sibling.
int64_t GradientSums(const Range& leaves) {
  int64_t most = 0;
  int64_t done = 0;
  for (const Range& node : CanonicalNodes(leaves)) {
    const int64_t levels = std::bit_width(static_cast<uint64_t>(node.size())) - 1;
    most = std::max(most, done + std::max<int64_t>(levels, 1));
    ++done;
  }
  return most;
}

// A keyed table's entries for a row (embedding/key_slots.h), at half full, its key and its use.
constexpr int64_t kKeyBytes = 2 * 16 + 8 + 8;

// 2 bits a row: whether it is there, and whether it is touched.
int64_t BitBytes(int64_t rows) { return (rows + 3) / 4; }

}  // namespace

const char* MemoryPartName(MemoryPart part) {
  constexpr const char* kNames[kMemoryParts] = {
      "rows of embedding tables (embedding.width, optimizer.sparse)",
      "dense weights, gradients and slots",
      "gradient sums of the threads",
      "activations of the threads (parallel.threads)",
      "batches read ahead (training.batch_size, data.reader_threads)",
      "ids and gradients of a batch (training.batch_size)",
      "the checkpoint's copy of the state",
      "the neural tangent kernel (--rows, spectrum.ntk_rows)"};
  return kNames[static_cast<int>(part)];
}

const char* MemoryPartKey(MemoryPart part) {
  constexpr const char* kKeys[kMemoryParts] = {"embedding_rows",  "dense",   "gradient_sums",
                                               "activations",     "batches", "exchange",
                                               "checkpoint_copy", "ntk"};
  return kKeys[static_cast<int>(part)];
}

int64_t RankMemory::sure() const {
  int64_t sum = 0;
  for (const int64_t bytes : surely) AddSize(bytes, &sum);
  return sum;
}

int64_t RankMemory::most() const {
  int64_t sum = sure();
  AddSize(unsure_rows, &sum);
  return sum;
}

std::vector<int64_t> OccurringIds(const std::string& dataset_path, const DatasetInfo& data) {
  std::vector<int64_t> occurring(data.categorical.size(), 0);
  const StatusOr<std::string> text = ReadFile(dataset_path + "/" + kStatisticsFile);
  if (!text.ok()) return occurring;
  const Json json = Json::parse(*text);
  if (!json.is_object() || !json.contains("categorical")) return occurring;
  const auto number = [](const Json& part, const char* name) -> int64_t {
    if (!part.is_object() || !part.contains(name)) return 0;
    return part[name].is_number_integer() ? std::max<int64_t>(part[name].get<int64_t>(), 0) : 0;
  };
  for (const Json& field : json["categorical"]) {
    if (!field.is_object() || !field.contains("train")) continue;
    for (size_t f = 0; f < occurring.size(); ++f) {
      if (field.value("name", Json()) != data.categorical[f].name) continue;
      // Values that the vocabulary lacks share id 0.
      const int64_t known = number(field["train"], "distinct") - number(field["train"], "unknown");
      occurring[f] = std::clamp<int64_t>(known, 0, data.categorical[f].ids);
    }
  }
  return occurring;
}

Experiment ForInference(Experiment experiment) {
  experiment.mutable_optimizer()->set_dense(OptimizerConfig::SGD);
  experiment.mutable_optimizer()->set_sparse(OptimizerConfig::SPARSE_SGD);
  experiment.mutable_checkpoint()->set_disabled(true);
  experiment.clear_publish();
  // A model's folder may be on another host than the disk that it was trained with.
  experiment.mutable_embedding()->clear_tier();
  if (const int32_t iterations = experiment.evaluation().iterations(); iterations > 0) {
    SetIterations(iterations, experiment.mutable_model());
  }
  return experiment;
}

MemoryPlan::MemoryPlan(const Experiment& experiment, const DatasetInfo& data, const Graph* graph,
                       const Options& options)
    : experiment_(experiment),
      data_(&data),
      graph_(graph),
      options_(options),
      workspace_(CpuExecutor<float>(*graph).workspace_plan()),
      tables_(MakeTables(experiment, data)) {
  const SpectrumConfig& spectrum = experiment.spectrum();
  if (options_.trains) options_.ntk_rows = spectrum.disabled() ? 0 : spectrum.ntk_rows();
  if (options_.ntk_rows > 0) ntk_.emplace(*graph);
  const std::vector<FieldSpec> fields = MakeFields(experiment, data);
  occurring_.assign(tables_.size(), 0);
  most_.assign(tables_.size(), 0);
  const bool bounded =
      options.trains && TrainingRows() > 0 && experiment.training().warm_start().path().empty();
  const int64_t rows_read = std::min(TrainingRows(), SizeProduct({Steps(), BatchRows()}));
  for (size_t f = 0; f < data.categorical.size(); ++f) {
    const int t = fields[f].table;
    if (f < options.occurring_ids.size()) {
      occurring_[t] = std::max(occurring_[t], options.occurring_ids[f]);
    }
    // A keyed table without a capacity has no other bound; bags of one id are the least.
    const bool unbounded = tables_[t].keyed && tables_[t].rows == 0;
    const bool by_rows = bounded && (unbounded || !data.categorical[f].multi_hot);
    AddSize(by_rows ? rows_read : tables_[t].rows, &most_[t]);
    for (size_t other = 0; bounded && other < tables_.size(); ++other) {
      if (tables_[other].role == TableRole::kCounts && tables_[other].beside == t) {
        AddSize(rows_read, &most_[other]);
      }
    }
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!tables_[t].looked_up() && !tables_[t].keyed) most_[t] = tables_[t].rows;
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!tables_[t].keyed || tables_[t].rows > 0) most_[t] = std::min(most_[t], tables_[t].rows);
  }
}

MemoryPlan MemoryPlan::With(const Experiment& experiment) const {
  MemoryPlan other = *this;
  other.experiment_ = experiment;
  return other;
}

MemoryPlan MemoryPlan::WithNtkRows(int64_t rows) const {
  MemoryPlan other = *this;
  other.options_.ntk_rows = rows;
  return other;
}

MemoryPlan MemoryPlan::WithEmbeddingWidth(int64_t width) const {
  MemoryPlan other = *this;
  for (TableSpec& table : other.tables_) {
    if (!table.counts()) table.width += width - experiment_.embedding().width();
  }
  return other;
}

StatusOr<ShardPlan> MemoryPlan::Shards(int ranks) const {
  return MakePlan(experiment_, tables_, ranks);
}

// ---- What is done

int64_t MemoryPlan::BatchRows() const {
  // As many as can be cut into leaves.
  const int64_t batch = std::min(experiment_.training().batch_size(),
                                 kMostSize / experiment_.parallel().virtual_shards());
  return TrainingRows() > 0 ? std::min(batch, TrainingRows()) : batch;
}

// Returns the steps of the whole run, or a very large number without data.
int64_t MemoryPlan::Steps() const {
  const int64_t limit = experiment_.training().max_steps();
  int64_t steps = kMostSize;
  if (TrainingRows() > 0) {
    const int64_t batch = BatchRows();
    steps = SizeProduct({(TrainingRows() - 1) / batch + 1, experiment_.training().epochs()});
  }
  return limit > 0 ? std::min(limit, steps) : steps;
}

int64_t MemoryPlan::NtkRows() const {
  if (!ntk_) return 0;
  const int64_t rows = options_.ntk_split == Split::kTrain
                           ? TrainingRows()
                           : data_->rows[static_cast<int>(options_.ntk_split)];
  return rows > 0 ? std::min(rows, options_.ntk_rows) : options_.ntk_rows;
}

// Whether training sees every row of the training split, unless a signal stops it.
bool MemoryPlan::CompletesAnEpoch() const {
  if (!options_.trains || TrainingRows() == 0 || TrainingRows() < SplitRows()) return false;
  const TrainingConfig& training = experiment_.training();
  if (training.monitor().early_stop_patience() > 0 && training.eval_every_steps() > 0) return false;
  return Steps() >= (TrainingRows() - 1) / BatchRows() + 1;
}

// ---- Parts

// A table's rows on a rank: how many there are, how many are sure to be made, how many can be made.
struct MemoryPlan::Rows {
  int64_t all = 0;
  int64_t surely = 0;
  int64_t most = 0;
};

MemoryPlan::Rows MemoryPlan::RowsOf(int table, const ShardPlan& shards, int rank) const {
  Rows rows;
  rows.all = shards.RowsOnRank(table, rank);
  // How many keys there are is not known before.
  if (tables_[table].keyed) {
    rows.most = rows.all > 0 ? std::min(most_[table], rows.all) : most_[table];
    rows.all = rows.most;
    return rows;
  }
  const OptimizerKind kind = MakeSparseOptimizer(experiment_.optimizer()).rule.kind;
  if (options_.trains && kind == OptimizerKind::kDenseAdam) {
    rows.surely = rows.most = rows.all;
    return rows;
  }
  // Ids spread over the partitions evenly: low ones by their order, hashed ones by their hash.
  const auto share = [&](int64_t ids, int64_t of) {
    return static_cast<int64_t>(static_cast<__int128>(ids) * rows.all / of);
  };
  if (options_.trains) {
    rows.surely = CompletesAnEpoch() ? share(occurring_[table], tables_[table].rows) : 0;
    rows.most = std::max(rows.surely, std::min(most_[table], rows.all));
  } else {
    int64_t total = 0;
    for (const TableSpec& each : tables_) AddSize(each.rows, &total);
    rows.surely = total > 0 ? std::min(rows.all, share(options_.model_rows.begin, total)) : 0;
    rows.most = std::min(rows.all, options_.model_rows.end);
  }
  return rows;
}

void MemoryPlan::AddTables(const ShardPlan& shards, int rank, RankMemory* memory) const {
  const SparseOptimizerOptions optimizer = MakeSparseOptimizer(experiment_.optimizer());
  const OptimizerKind kind = optimizer.rule.kind;
  const bool rows_wait =
      options_.trains && !options_.on_device && WaitingRows<float>::MayWait(optimizer);
  const int64_t kept = WritesDeltas(experiment_.checkpoint()) && !options_.on_device
                           ? RowStore<float>::kRecordBytes
                           : int64_t{0};
  int64_t surely = 0, all = 0;
  int64_t most = 0;  // a row, and its kept record, that is alone on its page takes the page
  const TierConfig& tier = experiment_.embedding().tier();
  int64_t in_files = 0, most_in_files = 0;  // behind a tier: rows without what is beside them
  int64_t stored = 0, stored_most = 0, stored_all = 0;  // in a checkpoint, by this rank
  for (int t = 0; t < static_cast<int>(tables_.size()); ++t) {
    const Rows rows = RowsOf(t, shards, rank);
    if (!options_.trains && tables_[t].counts()) continue;
    const RowShape shape = RowShapeOf(tables_[t], kind);
    const int64_t elements = shape.elements();
    const int64_t row = (options_.on_device ? elements * kElement : RowBytes(shape, kElement)) +
                        (tables_[t].keyed ? kKeyBytes : 0);
    // Of rows that batches name.
    const int64_t number = rows_wait ? WaitingRows<float>::kNumberBytes : 0;
    AddSize(SizeProduct({rows.all, row + kept + number}), &all);
    AddSize(BitBytes(rows.all), &all);
    const bool in_file = !tier.path().empty() && tables_[t].looked_up();
    const int64_t beside = in_file ? row - RowBytes(shape, kElement) : row;  // in memory
    AddSize(SizeProduct({rows.surely, beside + kept}), &surely);
    if (rows.surely == rows.all) AddSize(BitBytes(rows.all), &surely);
    const auto most_of = [&rows](int64_t bytes) {
      return std::min(SizeProduct({rows.all, bytes}),
                      SizeProduct({rows.most, std::max(bytes, kPageBytes)}));
    };
    if (beside > 0) AddSize(most_of(beside + number), &most);
    if (in_file) {
      AddSize(SizeProduct({rows.surely, row - beside}), &in_files);
      AddSize(most_of(row - beside), &most_in_files);
    }
    AddSize(std::min(SizeProduct({rows.all, kept}), SizeProduct({rows.most, kPageBytes})), &most);
    const int64_t copies = shards.replicated(t) ? shards.ranks() : 1;
    const int64_t record = static_cast<int64_t>(sizeof(int64_t)) + elements * kElement;
    AddSize(SizeProduct({rows.surely / copies, record}), &stored);
    AddSize(SizeProduct({rows.most / copies, record}), &stored_most);
    AddSize(SizeProduct({rows.all / copies, record}), &stored_all);
  }
  memory->files = in_files;
  memory->most_files = most_in_files;
  AddSize(std::min(in_files, tier.memory_bytes()), &surely);
  AddSize(std::min(most_in_files, tier.memory_bytes()), &most);
  if (!options_.trains) {
    const int64_t row = std::max(tables_.empty() ? 0 : tables_[0].width * kElement, kPageBytes);
    most = std::min(most, SizeProduct({options_.model_rows.end / shards.ranks() + 1, row}));
    most = std::max(most, surely);
  }
  if (options_.on_device) {
    // All rows are taken at once (embedding/cuda/row_tables.h): on the device, or beyond the limit
    // half of it there and the rest in page-locked memory.
    const int64_t limit = experiment_.parallel().device_embedding_bytes();
    const int64_t there = limit > 0 && all > limit ? limit / 2 : all;
    AddSize(limit > 0 && all > limit ? 0 : there, &memory->device);
    surely = most = all -= there;
  }
  memory->surely[static_cast<int>(MemoryPart::kTableRows)] = surely;
  memory->unsure_rows = std::max(int64_t{0}, most - surely);
  AddSize(all, &memory->address_space);
  if (options_.trains && !experiment_.publish().path().empty()) {
    // The largest copy is a base's: the share's, and on rank 0 the whole of it beside.
    for (int t = 0; t < static_cast<int>(tables_.size()); ++t) {
      const Rows rows = RowsOf(t, shards, rank);
      const int64_t copies = shards.replicated(t) ? shards.ranks() : 1;
      const int64_t words = RowWords(PublishedRows(experiment_.publish()), tables_[t].width);
      const int64_t record = static_cast<int64_t>(sizeof(int64_t)) + words * kElement;
      const bool whole = rank == 0 && shards.ranks() > 1;
      const bool known = CompletesAnEpoch() && !tables_[t].keyed;
      const int64_t all_surely = known ? occurring_[t] : 0;
      AddSize(SizeProduct({rows.surely / copies + (whole ? all_surely : 0), record}),
              &memory->surely[static_cast<int>(MemoryPart::kCheckpoint)]);
    }
  }
  if (!options_.trains || experiment_.checkpoint().disabled()) return;
  // A share that turns out larger than this is not copied.
  const int64_t staging = StagingBytes(experiment_);
  if (stored_all <= staging) {
    AddSize(stored, &memory->surely[static_cast<int>(MemoryPart::kCheckpoint)]);
    AddSize(stored_most - stored, &memory->unsure_rows);
  }
}

void MemoryPlan::AddDense(int rank, int ranks, RankMemory* memory) const {
  const ParameterLayout& layout = graph_->parameters();
  const OptimizerKind kind = MakeTrainStepOptions(experiment_, *data_).dense.rule.kind;
  int64_t own = 0;
  for (const Range& bucket : layout.buckets()) own += SliceOfRank(bucket, rank, ranks).size();
  // Matrices are packed for the forward and for the backward product.
  int64_t packed = 0;
  for (const ParameterInfo& parameter : layout.parameters()) {
    if (parameter.shape.size() > 1) AddSize(SizeProduct({parameter.size, 2}), &packed);
  }
  const int64_t slots = SlotElements(kind, kParameterBlock) / kParameterBlock;
  int64_t elements = layout.flat_size();
  AddSize(SizeProduct({own, 1 + slots}), &elements);
  if (options_.on_device) return AddSize(SizeProduct({elements, kElement}), &memory->device);
  AddSize(packed, &elements);
  if (options_.trains) {
    const int64_t leaves = experiment_.parallel().virtual_shards();
    const RankHosts hosts = RankHosts::InOrder(ranks, std::max(1, options_.ranks_per_host));
    const bool by_host = experiment_.parallel().by_host() && GoesByHost(hosts, ranks, leaves);
    const DenseBuffers buffers =
        SizeDenseBuffers(layout.buckets(), ranks, leaves, by_host ? &hosts : nullptr, rank);
    AddSize(buffers.send + buffers.receive, &elements);
  }
  memory->surely[static_cast<int>(MemoryPart::kDense)] = SizeProduct({elements, kElement});
  // Rank 0 writes the dense state.
  if (rank > 0 || !options_.trains || experiment_.checkpoint().disabled()) return;
  AddSize(SizeProduct({layout.element_count(), 1 + slots, kElement}),
          &memory->surely[static_cast<int>(MemoryPart::kCheckpoint)]);
}

void MemoryPlan::AddThreads(int rank, int ranks, RankMemory* memory) const {
  if (options_.on_device) return;
  const TrainStepOptions step = MakeTrainStepOptions(experiment_, *data_);
  const Range leaves = LeavesOfRank(rank, ranks, step.leaves);
  const int threads = experiment_.parallel().threads();
  int64_t activations = 0, sums = 0;
  for (int thread = 0; thread < threads; ++thread) {
    const ThreadShare share = ShareOfThread(step, *graph_, leaves, thread, threads);
    int64_t elements =
        SizeProduct({workspace_.elements_per_panel, WorkspacePanels(share.pass_rows)});
    AddSize(workspace_.flat_elements + workspace_.scratch_elements, &elements);
    AddSize(SizeProduct({elements, kElement}), &activations);
    if (options_.trains) AddSize(GradientSums(share.leaves), &sums);
  }
  memory->surely[static_cast<int>(MemoryPart::kActivations)] = activations;
  memory->surely[static_cast<int>(MemoryPart::kGradientSums)] =
      SizeProduct({sums, graph_->parameters().flat_size(), kElement});
}

void MemoryPlan::AddBatches(int rank, int ranks, RankMemory* memory) const {
  if (!options_.trains) return;  // evaluations may be of any split
  int64_t single = 0;
  for (const DatasetInfo::Categorical& field : data_->categorical) single += !field.multi_hot;
  const FeatureShape& features = graph_->features();
  const int64_t fields = features.categorical_fields + features.positions();
  int64_t row =
      kElement * (1 + features.numeric_fields + data_->has_weights + features.encoded_sequences()) +
      static_cast<int64_t>(sizeof(int64_t)) * (single + data_->has_groups + data_->has_times);
  if (single < fields) row += static_cast<int64_t>(sizeof(int64_t)) * fields;  // where bags end
  const int64_t rows =
      LocalPositions(BatchRows(), rank, ranks, experiment_.parallel().virtual_shards()).size();
  // One that each reader is at, the step's, and the next one's.
  const int64_t batches = std::min<int64_t>(Steps(), experiment_.data().reader_threads() + 2);
  memory->surely[static_cast<int>(MemoryPart::kBatches)] = SizeProduct({batches, rows, row});
  if (options_.on_device) return;
  // An id takes its column, its number and its occurrence, for this batch and the next. A bag takes
  // dE.
  constexpr int64_t kIdBytes = 8 + 4 + 8;
  int64_t exchange = SizeProduct({rows, single, kIdBytes, std::min<int64_t>(Steps(), 2)});
  AddSize(SizeProduct({rows, fields, TableWidth(experiment_), kElement}), &exchange);
  memory->surely[static_cast<int>(MemoryPart::kExchange)] = exchange;
}

void MemoryPlan::AddNtk(int rank, int ranks, RankMemory* memory) const {
  if (!ntk_) return;
  const ParallelConfig& parallel = experiment_.parallel();
  const int64_t own = LocalPositions(NtkRows(), rank, ranks, parallel.virtual_shards()).size();
  memory->surely[static_cast<int>(MemoryPart::kNtk)] =
      ntk_->Bytes(NtkRows(), own, rank, ranks, parallel.threads());
}

RankMemory MemoryPlan::OfRank(const ShardPlan& shards, int rank) const {
  RankMemory memory;
  AddTables(shards, rank, &memory);
  AddDense(rank, shards.ranks(), &memory);
  AddThreads(rank, shards.ranks(), &memory);
  AddBatches(rank, shards.ranks(), &memory);
  AddNtk(rank, shards.ranks(), &memory);
  for (int part = 0; part < kMemoryParts; ++part) {
    if (part == static_cast<int>(MemoryPart::kTableRows)) continue;
    AddSize(memory.surely[part], &memory.address_space);
  }
  return memory;
}

}  // namespace elastor
