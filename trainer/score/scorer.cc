#include "trainer/score/scorer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <utility>

#include "collective/communicator.h"
#include "core/base/text.h"
#include "core/kernels/cpu/isa.h"
#include "embedding/bag_pooling.h"
#include "embedding/unique_ids.h"
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

Status CheckPrecision(const std::string& folder, const Experiment& experiment) {
  const Precision precision = PrecisionOf(experiment.training());
  if (precision == Precision::kFloat32 || (precision == Precision::kBFloat16 && CpuHasBFloat16())) {
    return OkStatus();
  }
  return UserError(folder +
                   ": training.precision: this CPU cannot compute as the model was trained; "
                   "expected FLOAT32, or BFLOAT16 on a CPU with AVX512-BF16");
}

}  // namespace

// The memory of one call.
struct Scorer::Worker {
  explicit Worker(const Scorer& scorer)
      : ids(&scorer.layout_), workspace(scorer.executor_.workspace_plan(), kPassRows) {}

  LocalBatch batch;
  UniqueIds ids;
  std::vector<float*> rows_of_ids;
  std::vector<float> forgotten;  // rows that training has not seen
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

StatusOr<std::unique_ptr<Scorer>> Scorer::Open(const std::string& model_dir, ThreadPool* pool) {
  const CanonicalWhile canonical;
  const std::unique_ptr<Communicator> self = MakeSelfCommunicator();
  ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint stored, StoredCheckpoint::Open(model_dir, *self));
  ELASTOR_ASSIGN_OR_RETURN(ModelDescription model,
                           ModelDescription::Of(stored.manifest(), stored.manifest_path()));
  ELASTOR_RETURN_IF_ERROR(CheckPrecision(model_dir, model.experiment));
  ELASTOR_ASSIGN_OR_RETURN(ResolvedModel resolved, ResolveModel(model.experiment, model.data));
  if (resolved.task.kind != Task::Kind::kBinary) {
    return UserError(model_dir + ": its labels are classes; expected 0 or 1");
  }
  std::unique_ptr<Scorer> scorer(new Scorer(std::move(model), std::move(resolved)));
  ELASTOR_RETURN_IF_ERROR(scorer->LoadWeights(stored));
  // Rows of a delta take the place of its base's.
  if (stored.base() != nullptr) ELASTOR_RETURN_IF_ERROR(scorer->LoadRows(*stored.base(), pool));
  ELASTOR_RETURN_IF_ERROR(scorer->LoadRows(stored, pool));
  scorer->executor_.Prepare(scorer->weights_.data(), pool);
  return scorer;
}

Scorer::Scorer(ModelDescription model, ResolvedModel resolved)
    : model_(std::move(model)),
      task_(resolved.task),
      graph_(std::move(resolved.graph)),
      layout_(std::move(resolved.tables), std::move(resolved.fields)),
      weights_(graph_.parameters().flat_size()),
      executor_(graph_, CpuRewrites::kAll, PrecisionOf(model_.experiment.training())) {
  for (int64_t t = 0; t < layout_.tables(); ++t) {
    stores_.emplace_back(
        layout_.table(t), /*slots=*/0, AllPartitions(),
        RowStore<float>::Initial{static_cast<uint64_t>(model_.experiment.training().seed()), 0});
  }
}

Scorer::~Scorer() = default;

Status Scorer::LoadWeights(const StoredCheckpoint& stored) {
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored.OpenDense());
  for (const ParameterInfo& p : graph_.parameters().parameters()) {
    ELASTOR_ASSIGN_OR_RETURN(const std::span<const float> values,
                             stored.ReadDense(dense, {p.name, TensorType::kF32, p.shape}));
    std::ranges::copy(values, weights_.begin() + p.offset);
  }
  return dense.CheckReadable();
}

Status Scorer::LoadRows(const StoredCheckpoint& stored, ThreadPool* pool) {
  const Manifest& manifest = stored.manifest();
  for (size_t t = 0; t < manifest.tables.size(); ++t) {
    const StoredTable& table = manifest.tables[t];
    const bool known = t < stores_.size() && layout_.table(t).name == table.name &&
                       layout_.table(t).rows == table.keys &&
                       layout_.table(t).width == table.columns[0].width;
    if (!known || manifest.tables.size() != stores_.size()) {
      return UserError(stored.manifest_path() + ": table '" + table.name +
                       "' is not as its experiment and its data make it");
    }
  }
  for (size_t f = 0; f < manifest.embedding.size(); ++f) {
    ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file, stored.OpenEmbedding(f));
    std::vector<std::pair<size_t, const RowPiece*>> pieces;
    for (size_t t = 0; t < stores_.size(); ++t) {
      for (const RowPiece& piece : manifest.embedding[f].pieces[t]) pieces.emplace_back(t, &piece);
    }
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    Status failure;
    const auto load = [&](int) {
      for (size_t i = next++; i < pieces.size(); i = next++) {
        const auto [t, piece] = pieces[i];
        const StatusOr<StoredCheckpoint::Rows> rows = stored.ReadPiece(file, f, t, *piece, 1);
        if (!rows.ok()) {
          const std::lock_guard lock(mutex);
          failure = rows.status();
          continue;
        }
        const int64_t width = layout_.width(static_cast<int64_t>(t));
        for (size_t r = 0; r < rows->keys.size(); ++r) {
          bool created;
          float* const row = stores_[t].Claim(rows->keys[r], &created);
          std::copy_n(rows->columns[0].data() + r * width, width, row);
        }
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
  std::unique_ptr<Worker> worker;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      worker = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (worker == nullptr) worker = std::make_unique<Worker>(*this);
  const Status status = ScoreOn(rows, worker.get(), logits);
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }
  ELASTOR_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < logits->size(); ++i) {
    if (std::isfinite((*logits)[i])) continue;
    return DivergedError(row_text(i, task_.outputs()) + "the model's logit is not finite");
  }
  return OkStatus();
}

Status Scorer::ScoreOn(Rows* rows, Worker* worker, std::vector<float>* logits) const {
  LocalBatch& batch = worker->batch;
  const FeatureShape& features = graph_.features();
  const int64_t count = rows->rows;
  logits->resize(count * task_.outputs());
  if (count == 0) return OkStatus();
  FillLocalBatch(0, count, /*rank=*/0, /*ranks=*/1, /*leaves=*/1,
                 static_cast<int64_t>(model_.data.categorical.size()), rows, &batch);
  LayOutSequences(features.sequences, &batch);
  UniqueIds& ids = worker->ids;
  ELASTOR_RETURN_IF_ERROR(ids.Build(batch.sparse, /*pool=*/nullptr));

  std::vector<float*>& rows_of_ids = worker->rows_of_ids;
  rows_of_ids.resize(ids.size());
  const int64_t widest = layout_.widest();
  int64_t missing = 0;
  for (int64_t t = 0; t < layout_.tables(); ++t) {
    const Range range = ids.OfTable(t);
    stores_[t].Find({ids.keys() + range.begin, static_cast<size_t>(range.size())},
                    rows_of_ids.data() + range.begin);
  }
  for (const float* row : rows_of_ids) missing += row == nullptr;
  worker->forgotten.resize(missing * widest);
  float* made = worker->forgotten.data();
  for (int64_t t = 0; missing > 0 && t < layout_.tables(); ++t) {
    const Range range = ids.OfTable(t);
    for (int64_t u = range.begin; u < range.end; ++u) {
      if (rows_of_ids[u] != nullptr) continue;
      stores_[t].MakeInitial(ids.keys()[u], made);
      rows_of_ids[u] = made;
      made += widest;
    }
  }

  for (int64_t row = 0; row < count; row += kPassRows) {
    Pass<float> pass;
    pass.workspace = &worker->workspace;
    pass.leaves = PassLeaves(std::min(kPassRows, count - row));
    pass.numeric = batch.numeric.data() + row * features.numeric_fields;
    pass.lengths = batch.lengths.data() + row * features.encoded_sequences();
    const Panels<float> e = executor_.Embeddings(pass);
    const int64_t tables_begin = features.numeric_features();
    PoolBags<float>(layout_, ids, rows_of_ids.data(), row,
                    e.Slice(tables_begin, e.features - tables_begin));
    executor_.Forward(pass);
    const Panels<const float> outputs = executor_.Logits(pass);
    for (int64_t i = 0; i < pass.rows(); ++i) {
      for (int64_t o = 0; o < task_.outputs(); ++o) {
        (*logits)[(row + i) * task_.outputs() + o] = outputs.At(i, o);
      }
    }
  }
  return OkStatus();
}

}  // namespace elastor
