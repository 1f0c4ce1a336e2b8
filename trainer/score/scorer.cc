#include "trainer/score/scorer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>

#include "collective/communicator.h"
#include "core/base/text.h"
#include "core/kernels/cpu/isa.h"
#include "core/kernels/small_rows.h"
#include "embedding/bag_pooling.h"
#include "embedding/key_space.h"
#include "embedding/unique_ids.h"
#include "trainer/checkpoint/digest_records.h"
#include "trainer/checkpoint/publication.h"
#include "trainer/data/batch.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/make_options.h"
#include "trainer/step/step_options.h"

namespace elastor {
namespace {

std::vector<int32_t> AllPartitions() {
  std::vector<int32_t> partitions(kPartitions);
  std::iota(partitions.begin(), partitions.end(), 0);
  return partitions;
}

std::vector<TableSpec> WithoutCounts(std::vector<TableSpec> tables) {
  std::erase_if(tables, [](const TableSpec& table) { return table.counts(); });
  return tables;
}

Status CheckPrecision(const std::string& folder, const Experiment& experiment) {
  const Precision precision = PrecisionOf(experiment.training());
  if (precision == Precision::kFloat32 || (precision == Precision::kBFloat16 && CpuHasBFloat16())) {
    return OkStatus();
  }
  return UserError(folder +
                   ": training.precision: this CPU cannot compute as the model was trained; "
                   "expected FLOAT32, or BFLOAT16 on a CPU with AVX512-BF16");
}

// Returns the model's table whose rows or deletions a manifest's table holds, for every one; -1:
// counts, which training alone reads. They stand behind all others.
std::vector<int> PlacesOf(const Manifest& manifest) {
  std::vector<int> places;
  int rows = -1;
  for (const StoredTable& table : manifest.tables) {
    if (!table.holds_deletions()) ++rows;
    const bool counts = table.counts || (table.holds_deletions() && places.back() < 0);
    places.push_back(counts ? -1 : rows);
  }
  return places;
}

// Calls use(table, rows) for the pieces of all files (deleted rows have no columns), on the threads
// of `pool` if it is not null.
template <typename Use>
Status ForEachPiece(const StoredCheckpoint& stored, ThreadPool* pool, const Use& use) {
  const Manifest& manifest = stored.manifest();
  const std::vector<int> places = PlacesOf(manifest);
  for (size_t f = 0; f < manifest.embedding.size(); ++f) {
    ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file, stored.OpenEmbedding(f));
    struct Piece {
      size_t table, of;  // where it is stored; the table whose rows or deletions it holds
      const RowPiece* piece;
    };
    std::vector<Piece> pieces;
    for (size_t t = 0; t < places.size(); ++t) {
      if (places[t] < 0) continue;
      for (const RowPiece& piece : manifest.embedding[f].pieces[t]) {
        pieces.push_back({t, static_cast<size_t>(places[t]), &piece});
      }
    }
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    Status failure;
    const auto load = [&](int) {
      for (size_t i = next++; i < pieces.size(); i = next++) {
        const auto [t, of, piece] = pieces[i];
        const StatusOr<StoredCheckpoint::Rows> rows = stored.ReadPiece(file, f, t, *piece, 1);
        if (rows.ok()) {
          use(of, *rows);
          continue;
        }
        const std::lock_guard lock(mutex);
        failure = rows.status();
      }
    };
    if (pool != nullptr) {
      pool->Run(load);
    } else {
      load(0);
    }
    ELASTOR_RETURN_IF_ERROR(failure);
    ELASTOR_RETURN_IF_ERROR(file.CheckReadable());
  }
  return OkStatus();
}

// The rows and deletions that a folder has of each of the model's tables.
struct StoredCounts {
  StoredCounts(const Manifest& manifest, size_t tables) : rows(tables, 0), gone(tables, 0) {
    const std::vector<int> places = PlacesOf(manifest);
    for (const EmbeddingFile& file : manifest.embedding) {
      for (size_t t = 0; t < places.size(); ++t) {
        if (places[t] < 0 || file.pieces[t].empty()) continue;
        std::vector<int64_t>& counts = manifest.tables[t].holds_deletions() ? gone : rows;
        counts[places[t]] += file.pieces[t].back().rows.end;
      }
    }
  }
  std::vector<int64_t> rows, gone;
};

}  // namespace

// The memory of one call.
struct Scorer::Worker {
  Worker(const EmbeddingLayout& layout, const WorkspacePlan& plan)
      : ids(&layout), workspace(plan, kPassRows) {}

  LocalBatch batch;
  UniqueIds ids;
  std::vector<float*> rows_of_ids;
  std::vector<float> made;  // rows that training has not seen, and small ones
  Workspace<float> workspace;
};

StatusOr<ModelDescription> ModelDescription::Of(const Manifest& manifest, const std::string& path) {
  ModelDescription model;
  model.metadata = manifest.metadata;
  if (!model.metadata.encoding) {
    return UserError(
        path +
        ": of an earlier version, which does not tell the fields of its data; expected "
        "a model of version 2");
  }
  const std::string where = path + ": experiment";
  ELASTOR_ASSIGN_OR_RETURN(const Experiment written,
                           ParseExperiment(model.metadata.experiment, where));
  ELASTOR_ASSIGN_OR_RETURN(model.experiment, CompleteStored(written));
  if (const Status valid = ValidateExperiment(model.experiment); !valid.ok()) {
    return UserError(where + ": " + valid.message());
  }
  const DataEncoding& encoding = *model.metadata.encoding;
  model.data.numeric = encoding.numeric;
  model.data.categorical = encoding.categorical;
  model.data.labels = encoding.labels;
  model.data.classes = encoding.classes;
  model.data.image = encoding.image;
  model.data.schema = encoding.schema;
  return model;
}

StatusOr<std::unique_ptr<Scorer>> Scorer::Open(const std::string& model_dir, ThreadPool* pool,
                                               RowFormat rows) {
  const CanonicalWhile canonical;
  const std::unique_ptr<Communicator> self = MakeSelfCommunicator();
  ELASTOR_ASSIGN_OR_RETURN(
      const StoredCheckpoint stored,
      StoredCheckpoint::Open(model_dir, *self, StoredCheckpoint::SmallRows::kTaken));
  ELASTOR_ASSIGN_OR_RETURN(ModelDescription model,
                           ModelDescription::Of(stored.manifest(), stored.manifest_path()));
  ELASTOR_RETURN_IF_ERROR(CheckPrecision(model_dir, model.experiment));
  ELASTOR_ASSIGN_OR_RETURN(ResolvedModel resolved, ResolveModel(model.experiment, model.data));
  if (resolved.task.kind != Task::Kind::kBinary) {
    return UserError(model_dir + ": its labels are classes; expected 0 or 1");
  }
  const RowFormat found = RowFormatOf(stored.manifest().metadata);
  if (rows == RowFormat::kFloat32) rows = found;
  if (found != RowFormat::kFloat32 && rows != found) {
    return UserError(StrCat(model_dir, ": has ", RowFormatName(found),
                            " rows; expected FLOAT32 to make ", RowFormatName(rows),
                            " rows of them"));
  }
  auto body = std::make_shared<Body>(model, std::move(resolved), rows);
  std::unique_ptr<Scorer> scorer(new Scorer(std::move(model), std::move(body), nullptr));
  ELASTOR_RETURN_IF_ERROR(scorer->LoadDense(stored, pool));
  // Rows of a delta take the place of its base's.
  if (stored.base() != nullptr) ELASTOR_RETURN_IF_ERROR(scorer->LoadRows(*stored.base(), pool));
  ELASTOR_RETURN_IF_ERROR(scorer->LoadRows(stored, pool));
  ELASTOR_RETURN_IF_ERROR(scorer->CheckDigest(stored.manifest_path()));
  return scorer;
}

Scorer::Body::Body(const ModelDescription& model, ResolvedModel resolved, RowFormat rows)
    : task(resolved.task),
      graph(std::move(resolved.graph)),
      layout(WithoutCounts(std::move(resolved.tables)), std::move(resolved.fields)),
      rows(rows) {
  const RowStore<float>::Initial initial = {
      static_cast<uint64_t>(model.experiment.training().seed()), 0};
  for (int64_t t = 0; t < layout.tables(); ++t) {
    TableSpec table = layout.table(t);
    table.width = words(t);
    arrays.push_back(table.keyed ? nullptr
                                 : std::make_unique<RowStore<float>>(table, /*slots=*/0,
                                                                     AllPartitions(), initial));
    table = {
        .name = table.name, .rows = 1, .width = layout.width(t), .init_stddev = table.init_stddev};
    initials.emplace_back(table, /*slots=*/0, AllPartitions(), initial);
  }
}

Scorer::Body::~Body() = default;

Scorer::Dense::Dense(const Graph& graph, Precision precision)
    : weights(graph.parameters().flat_size()), executor(graph, CpuRewrites::kAll, precision) {}

Scorer::Scorer(ModelDescription model, std::shared_ptr<Body> body, const Scorer* before)
    : model_(std::move(model)), body_(std::move(body)) {
  for (size_t t = 0; t < body_->arrays.size(); ++t) {
    if (body_->arrays[t] != nullptr) {
      keyed_.emplace_back();
    } else if (before != nullptr) {
      keyed_.emplace_back(*before->keyed_[t]);
    } else {
      keyed_.emplace_back(body_->words(t));
    }
  }
}

Scorer::~Scorer() = default;

// ---- Loading

Status Scorer::LoadDense(const StoredCheckpoint& stored, ThreadPool* pool) {
  auto loaded = std::make_shared<Dense>(body_->graph, PrecisionOf(model_.experiment.training()));
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored.OpenDense());
  for (const ParameterInfo& p : body_->graph.parameters().parameters()) {
    ELASTOR_ASSIGN_OR_RETURN(const std::span<const float> values,
                             stored.ReadDense(dense, {p.name, TensorType::kF32, p.shape}));
    std::ranges::copy(values, loaded->weights.begin() + p.offset);
  }
  ELASTOR_RETURN_IF_ERROR(dense.CheckReadable());
  loaded->executor.Prepare(loaded->weights.data(), pool);
  dense_ = std::move(loaded);
  return OkStatus();
}

Status Scorer::CheckTables(const StoredCheckpoint& stored) const {
  const Manifest& manifest = stored.manifest();
  const EmbeddingLayout& layout = body_->layout;
  std::vector<StoredTable> tables = manifest.tables_of_rows();
  std::erase_if(tables, [](const StoredTable& table) { return table.counts; });
  const RowFormat format = RowFormatOf(stored.manifest().metadata);
  for (size_t t = 0; t < tables.size(); ++t) {
    const StoredTable& table = tables[t];
    const bool known = t < keyed_.size() && layout.table(t).name == table.name &&
                       layout.table(t).keys() == table.keys &&
                       table.columns[0] == WeightsColumn(format, layout.width(t));
    if (known) continue;
    return UserError(stored.manifest_path() + ": table '" + table.name +
                     "' is not as its experiment and its data make it");
  }
  if (tables.size() == keyed_.size()) return OkStatus();
  return UserError(StrCat(stored.manifest_path(), ": has ", tables.size(),
                          " tables; expected the model's ", keyed_.size()));
}

Status Scorer::LoadRows(const StoredCheckpoint& stored, ThreadPool* pool) {
  ELASTOR_RETURN_IF_ERROR(CheckTables(stored));
  const bool published = model_.metadata.publication.has_value();
  const RowFormat format = RowFormatOf(stored.manifest().metadata);
  const bool makes_small = body_->rows != format;
  const StoredCounts counts(stored.manifest(), keyed_.size());
  for (size_t t = 0; t < keyed_.size(); ++t) {
    if (keyed_[t]) keyed_[t]->Reserve(counts.rows[t], counts.gone[t]);
  }
  std::mutex mutex;
  Status failed;
  const auto load = [&](size_t t, const StoredCheckpoint::Rows& rows) {
    const TableSpec& table = body_->layout.table(static_cast<int64_t>(t));
    const int64_t width = RowWords(format, table.width);
    std::unique_lock changing(mutex, std::defer_lock);
    if (keyed_[t]) changing.lock();
    if (rows.columns.empty()) {
      for (const int64_t key : rows.keys) keyed_[t]->Remove(key);
      return;
    }
    std::vector<float*> places;
    for (const int64_t key : rows.keys) places.push_back(Claim(t, key));
    if (keyed_[t]) changing.unlock();
    for (size_t r = 0; r < rows.keys.size(); ++r) {
      float* const row = places[r];
      const float* const from = rows.columns[0].data() + r * width;
      if (!makes_small) {
        std::copy_n(from, width, row);
      } else if (!EncodeRow(body_->rows, from, width, row)) {
        const std::lock_guard lock(mutex);
        failed =
            UserError(StrCat(stored.manifest_path(), ": key ", KeyText(rows.keys[r]), " of table '",
                             table.name, "' has a weight that is not finite, or not below 2^127; ",
                             RowFormatName(body_->rows), " rows cannot hold it"));
      }
    }
    if (!published) return;
    Digest digest;
    const uint64_t seed = RowSeed(table.name);
    for (size_t r = 0; r < rows.keys.size(); ++r) {
      digest.AddHashed(seed, static_cast<uint64_t>(rows.keys[r]),
                       rows.columns[0].data() + r * width, width * sizeof(float));
    }
    const std::lock_guard lock(mutex);
    rows_digest_.Merge(digest);
  };
  ELASTOR_RETURN_IF_ERROR(ForEachPiece(stored, pool, load));
  return failed;
}

Status Scorer::CheckDigest(const std::string& path) const {
  const CheckpointMetadata& metadata = model_.metadata;
  if (!metadata.publication) return OkStatus();
  Digest digest = rows_digest_;
  for (const ParameterInfo& p : body_->graph.parameters().parameters()) {
    AddDenseTensor(p.name, {dense_->weights.data() + p.offset, static_cast<size_t>(p.size)},
                   &digest);
  }
  if (digest.Hex() != metadata.state_digest) {
    return UserError(path + ": state_digest " + metadata.state_digest +
                     "; the weights here have the digest " + digest.Hex());
  }
  const std::string result =
      PublicationResult(*metadata.publication, metadata.control.step(), metadata.state_digest);
  if (result == metadata.publication->result) return OkStatus();
  return UserError(path + ": result " + metadata.publication->result + "; expected " + result);
}

float* Scorer::Claim(size_t table, int64_t key) {
  if (keyed_[table]) return keyed_[table]->Claim(key);
  bool created;
  return body_->arrays[table]->Claim(key, &created);
}

// ---- Versions

Digest Scorer::RecordOf(size_t table, int64_t key) const {
  float* row;
  Find(static_cast<int64_t>(table), {&key, 1}, &row);
  if (row == nullptr) return Digest();
  const TableSpec& spec = body_->layout.table(static_cast<int64_t>(table));
  return Digest::OfRecord(RowSeed(spec.name), static_cast<uint64_t>(key), row,
                          body_->words(table) * sizeof(float));
}

StatusOr<std::shared_ptr<const Scorer::Layer>> Scorer::ReadLayer(
    const StoredCheckpoint& stored) const {
  ELASTOR_RETURN_IF_ERROR(CheckTables(stored));
  const StoredCounts counts(stored.manifest(), keyed_.size());
  auto layer = std::make_shared<Layer>();
  for (size_t t = 0; t < keyed_.size(); ++t) {
    layer->emplace_back(counts.rows[t], counts.gone[t], body_->words(t));
  }
  Status twice;
  const auto refuse = [&](size_t t, int64_t key) {
    twice = UserError(StrCat(stored.manifest_path(), ": key ", KeyText(key), " of table '",
                             body_->layout.table(static_cast<int64_t>(t)).name, "' twice"));
  };
  ELASTOR_RETURN_IF_ERROR(
      ForEachPiece(stored, nullptr, [&](size_t t, const StoredCheckpoint::Rows& from) {
        const int64_t width = body_->words(t);
        for (size_t r = 0; r < from.keys.size(); ++r) {
          if (from.columns.empty()) {
            if (!(*layer)[t].AddGone(from.keys[r])) refuse(t, from.keys[r]);
          } else if (float* const row = (*layer)[t].Add(from.keys[r])) {
            std::copy_n(from.columns[0].data() + r * width, width, row);
          } else {
            refuse(t, from.keys[r]);
          }
        }
      }));
  ELASTOR_RETURN_IF_ERROR(twice);
  return std::shared_ptr<const Layer>(std::move(layer));
}

StatusOr<std::unique_ptr<Scorer>> Scorer::Next(const std::string& path) const {
  const CanonicalWhile canonical;
  ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint stored,
                           StoredCheckpoint::OpenPublishedDelta(path));
  const CheckpointMetadata& found = stored.manifest().metadata;
  const Publication& next = *found.publication;
  const Publication& here = *model_.metadata.publication;
  const std::string where = stored.manifest_path();
  if (next.origin != here.origin || found.model_hash != model_.metadata.model_hash) {
    return UserError(where + ": of another model; expected origin " + here.origin +
                     " and model_hash " + model_.metadata.model_hash);
  }
  if (next.number != here.number + 1 || next.follows != here.result) {
    return UserError(StrCat(where, ": number ", next.number, " that follows ", next.follows,
                            "; expected number ", here.number + 1, " that follows ", here.result));
  }
  if (RowFormatOf(stored.manifest().metadata) != body_->rows) {
    return UserError(StrCat(where, ": has ", RowFormatName(RowFormatOf(stored.manifest().metadata)),
                            " rows, and the model's are ", RowFormatName(body_->rows),
                            ", made when it was opened, so that it takes bases alone; expected "
                            "publish.rows of the run to make them"));
  }
  ModelDescription model = model_;
  model.metadata = found;
  std::unique_ptr<Scorer> scorer(new Scorer(std::move(model), body_, this));
  ELASTOR_RETURN_IF_ERROR(scorer->LoadDense(stored, /*pool=*/nullptr));
  ELASTOR_ASSIGN_OR_RETURN(const std::shared_ptr<const Layer> layer, ReadLayer(stored));
  scorer->layers_ = layers_;
  scorer->rows_digest_ = rows_digest_;
  for (size_t t = 0; t < layer->size(); ++t) {
    for (const int64_t key : (*layer)[t].keys()) scorer->rows_digest_.Subtract(RecordOf(t, key));
    for (const int64_t key : (*layer)[t].gone()) scorer->rows_digest_.Subtract(RecordOf(t, key));
  }
  scorer->layers_.push_back(layer);
  for (size_t t = 0; t < layer->size(); ++t) {
    for (const int64_t key : (*layer)[t].keys()) {
      scorer->rows_digest_.Merge(scorer->RecordOf(t, key));
    }
  }
  ELASTOR_RETURN_IF_ERROR(scorer->CheckDigest(where));
  return scorer;
}

bool Scorer::HasOldestLayerOf(const Scorer& other) const {
  return std::ranges::find(layers_, other.layers_.front()) != layers_.end();
}

std::unique_ptr<Scorer> Scorer::FoldOldestLayer() const {
  const Layer& layer = *layers_.front();
  std::unique_ptr<Scorer> scorer(new Scorer(model_, body_, this));
  // Nothing is changed if memory is lacking.
  for (size_t t = 0; t < layer.size(); ++t) {
    if (!keyed_[t]) continue;
    scorer->keyed_[t]->Reserve(std::ssize(layer[t].keys()), std::ssize(layer[t].gone()));
  }
  for (size_t t = 0; t < layer.size(); ++t) {
    for (const int64_t key : layer[t].gone()) scorer->keyed_[t]->Remove(key);
    for (size_t i = 0; i < layer[t].keys().size(); ++i) {
      std::copy_n(layer[t].row(i), body_->words(t), scorer->Claim(t, layer[t].keys()[i]));
    }
  }
  scorer->dense_ = dense_;
  scorer->layers_.assign(layers_.begin() + 1, layers_.end());
  scorer->rows_digest_ = rows_digest_;
  return scorer;
}

// ---- Scoring

Status Scorer::Score(Rows* rows, std::vector<float>* logits,
                     const std::function<int64_t(int64_t)>& number_of) const {
  const CanonicalWhile canonical;
  const auto row_text = [&](size_t element, size_t elements) {
    const int64_t row = static_cast<int64_t>(element / elements);
    return StrCat("row ", number_of ? number_of(row) : row, ": ");
  };
  const size_t numeric = model_.data.numeric.size();
  for (size_t i = 0; i < rows->numeric.size(); ++i) {
    if (!std::isinf(rows->numeric[i])) continue;
    return UserError(StrCat(row_text(i, numeric), "field ", model_.data.numeric[i % numeric].name,
                            ": infinite, or so once it is standardised; expected a finite number"));
  }
  const auto give = [this](auto* taken) { body_->workers.Give(taken); };
  const std::unique_ptr<SlotList<std::unique_ptr<Worker>>::Slot, decltype(give)> slot(
      body_->workers.Take(), give);
  if (slot->value == nullptr) {
    slot->value = std::make_unique<Worker>(body_->layout, dense_->executor.workspace_plan());
  }
  const Status status = ScoreOn(rows, slot->value.get(), logits);
  ELASTOR_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < logits->size(); ++i) {
    if (std::isfinite((*logits)[i])) continue;
    return DivergedError(row_text(i, task().outputs()) + "the model's logit is not finite");
  }
  return OkStatus();
}

void Scorer::Find(int64_t table, std::span<const int64_t> keys, float** rows) const {
  if (keyed_[table]) {
    keyed_[table]->Find(keys, rows);
  } else {
    body_->arrays[table]->Find(keys, rows);
  }
  for (const auto& layer : layers_) (*layer)[table].Replace(keys, rows);
}

int64_t Scorer::CountRows(int64_t table) const {
  if (keyed_[table]) return keyed_[table]->size();
  std::vector<int64_t> counts(kPartitions, 0);
  body_->arrays[table]->CountRows(RowSet::kAll, 0, 1, counts.data());
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void Scorer::MakeMissing(int64_t table, int64_t key, float* row) const {
  const TableSpec& spec = body_->layout.table(table);
  if (const int shared = body_->layout.Beside(table, TableRole::kShared); shared >= 0) {
    MakeInitial(shared, spec.keys().PartitionOf(key), row);
  } else if (spec.rules.admits()) {
    std::fill_n(row, spec.width, 0.0f);
  } else {
    MakeInitial(table, key, row);
  }
}

void Scorer::LookUp(Worker* worker) const {
  const UniqueIds& ids = worker->ids;
  const EmbeddingLayout& layout = body_->layout;
  std::vector<float*>& rows = worker->rows_of_ids;
  rows.resize(ids.size());
  for (int64_t t = 0; t < layout.tables(); ++t) {
    const Range range = ids.OfTable(t);
    const std::span keys(ids.keys() + range.begin, static_cast<size_t>(range.size()));
    Find(t, keys, rows.data() + range.begin);
    const int shared = layout.Beside(t, TableRole::kShared);
    for (int64_t u = range.begin; shared >= 0 && u < range.end; ++u) {
      if (rows[u] != nullptr) continue;
      const int64_t partition = layout.table(t).keys().PartitionOf(ids.keys()[u]);
      Find(shared, {&partition, 1}, &rows[u]);
    }
  }
  const bool small = body_->rows != RowFormat::kFloat32;
  const int64_t makes = small ? std::ssize(rows) : std::ranges::count(rows, nullptr);
  if (makes == 0) return;
  const int64_t room = DecodedRoom(layout.widest());
  worker->made.resize(makes * room);
  float* made = worker->made.data();
  for (int64_t t = 0; t < layout.tables(); ++t) {
    const Range range = ids.OfTable(t);
    for (int64_t u = range.begin; u < range.end; ++u) {
      if (rows[u] == nullptr) {
        MakeMissing(t, ids.keys()[u], made);
      } else if (small) {
        DecodeRow(body_->rows, rows[u], layout.width(t), made);
      } else {
        continue;
      }
      rows[u] = std::exchange(made, made + room);
    }
  }
}

Status Scorer::ScoreOn(Rows* rows, Worker* worker, std::vector<float>* logits) const {
  LocalBatch& batch = worker->batch;
  const FeatureShape& features = body_->graph.features();
  const EmbeddingLayout& layout = body_->layout;
  const CpuExecutor<float>& executor = dense_->executor;
  const int64_t task_outputs = task().outputs();
  const int64_t count = rows->rows;
  logits->resize(count * task_outputs);
  if (count == 0) return OkStatus();
  FillLocalBatch(0, count, /*rank=*/0, /*ranks=*/1, /*leaves=*/1,
                 static_cast<int64_t>(model_.data.categorical.size()), rows, &batch);
  ELASTOR_RETURN_IF_ERROR(LayOutSequences(features.sequences, &batch));
  UniqueIds& ids = worker->ids;
  ELASTOR_RETURN_IF_ERROR(ids.Build(batch.sparse, /*pool=*/nullptr));

  LookUp(worker);

  for (int64_t row = 0; row < count; row += kPassRows) {
    Pass<float> pass;
    pass.workspace = &worker->workspace;
    pass.leaves = PassLeaves(std::min(kPassRows, count - row));
    pass.numeric = batch.numeric.data() + row * features.numeric_fields;
    pass.lengths = batch.lengths.data() + row * features.encoded_sequences();
    const Panels<float> e = executor.Embeddings(pass);
    const int64_t tables_begin = features.numeric_features();
    PoolBags<float>(layout, ids, worker->rows_of_ids.data(), row,
                    e.Slice(tables_begin, e.features - tables_begin));
    executor.Forward(pass);
    const Panels<const float> outputs = executor.Logits(pass);
    for (int64_t i = 0; i < pass.rows(); ++i) {
      for (int64_t o = 0; o < task_outputs; ++o) {
        (*logits)[(row + i) * task_outputs + o] = outputs.At(i, o);
      }
    }
  }
  return OkStatus();
}

}  // namespace elastor
