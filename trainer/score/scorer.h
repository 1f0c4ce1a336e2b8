#ifndef ELASTOR_TRAINER_SCORE_SCORER_H_
#define ELASTOR_TRAINER_SCORE_SCORER_H_

#include <cfenv>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/digest.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"
#include "core/kernels/small_rows.h"
#include "core/task/task.h"
#include "embedding/embedding_layout.h"
#include "embedding/row_store.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/checkpoint/stored_checkpoint.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"
#include "trainer/score/keyed_rows.h"
#include "trainer/score/row_layer.h"
#include "trainer/score/slot_list.h"

namespace elastor {

// Sets canonical arithmetic on the calling thread during its lifetime: rounding to nearest, no
// traps, FTZ and DAZ. What the thread had before comes back, its flags included.
class CanonicalWhile {
 public:
  CanonicalWhile() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
    SetCanonicalFloatingPoint();
  }
  ~CanonicalWhile() { std::fesetenv(&before_); }
  CanonicalWhile(const CanonicalWhile&) = delete;
  CanonicalWhile& operator=(const CanonicalWhile&) = delete;

 private:
  std::fenv_t before_;
};

// Everything in a model's folder except its weights.
struct ModelDescription {
  CheckpointMetadata metadata;
  Experiment experiment;  // with every default filled in
  DatasetInfo data;       // fields and labels of the training data, without rows
  // Reads the description from a manifest. User error naming `path`, the manifest's, when it is of
  // version 1, which does not record the training data's fields, or when its experiment is refused.
  static StatusOr<ModelDescription> Of(const Manifest& manifest, const std::string& path);
};

// A trained model in memory, in one process and without communication. A row's logits equal those
// of modes evaluate and predict, to the last bit. Thread-safe, without a lock.
//
// A publication's scorer makes those of the next ones. They share its tables: the rows of a delta
// are a layer over them, until FoldOldestLayer writes them into the tables.
class Scorer {
 public:
  // Reads RUN/model or a checkpoint and verifies every byte that it uses. `pool`, which may be
  // null, shares the work of opening. rows: kFloat32 keeps embedding rows as they are stored;
  // others make small rows of them. User error in one line naming the file.
  static StatusOr<std::unique_ptr<Scorer>> Open(const std::string& model_dir, ThreadPool* pool,
                                                RowFormat rows = RowFormat::kFloat32);
  // Returns the model after a published delta, which must be the next one of the same chain.
  // `path` is its folder; every byte is verified, and the digest of the result. Where rows were
  // made small here, that digest cannot be, and the delta is refused. User error in one line.
  StatusOr<std::unique_ptr<Scorer>> Next(const std::string& path) const;
  // How many deltas are layers over the tables; whether another scorer has the same tables, and
  // there the oldest layer of this one.
  size_t layers() const { return layers_.size(); }
  bool SharesTables(const Scorer& other) const { return body_ == other.body_; }
  bool HasOldestLayerOf(const Scorer& other) const;
  // Writes the oldest layer into the tables, and returns this model without the layer.
  // REQUIRES: layers() > 0; every scorer that shares the tables and is in use has the layer.
  std::unique_ptr<Scorer> FoldOldestLayer() const;
  ~Scorer();

  const ModelDescription& model() const { return model_; }
  const Task& task() const { return body_->task; }
  const Graph& graph() const { return body_->graph; }

  // Replaces *logits by [rows][task().outputs()]. Leaves *rows undefined, but its memory may be
  // used again. Computes on the calling thread, with canonical arithmetic meanwhile. User error
  // naming field and id when an id is outside its table, or row and field when a number is infinite
  // (NaN is a missing one); diverged when a logit is not finite. number_of tells what the line
  // calls a row; null: its place in *rows.
  Status Score(Rows* rows, std::vector<float>* logits,
               const std::function<int64_t(int64_t)>& number_of = nullptr) const;

  // Sets rows[i] to the row of keys[i], or to null. Small rows are words (row_format()).
  void Find(int64_t table, std::span<const int64_t> keys, float** rows) const;
  // Writes the initial values of a row.
  void MakeInitial(int64_t table, int64_t key, float* row) const {
    body_->initials[table].MakeInitial(key, row);
  }
  // Return the number of a table's rows, and the keys of a keyed one. REQUIRES: layers() is 0.
  int64_t CountRows(int64_t table) const;
  std::vector<int64_t> KeysOf(int64_t table) const { return keyed_[table]->Keys(); }
  RowFormat row_format() const { return body_->rows; }
  const EmbeddingLayout& layout() const { return body_->layout; }
  const std::vector<float>& weights() const { return dense_->weights; }

 private:
  struct Worker;
  // What all versions of a model share.
  struct Body {
    Body(const ModelDescription& model, ResolvedModel resolved, RowFormat rows);
    ~Body();
    // Returns the floats that a stored row takes.
    int64_t words(size_t table) const {
      return RowWords(rows, layout.width(static_cast<int64_t>(table)));
    }

    const Task task;
    const Graph graph;
    const EmbeddingLayout layout;
    const RowFormat rows;
    std::vector<std::unique_ptr<RowStore<float>>> arrays;  // by table; null: a keyed one
    std::vector<RowStore<float>> initials;  // by table: without rows, for MakeInitial
    SlotList<std::unique_ptr<Worker>> workers;
  };
  struct Dense {
    Dense(const Graph& graph, Precision precision);

    std::vector<float> weights;
    CpuExecutor<float> executor;
  };
  // The rows of a delta, by table.
  using Layer = std::vector<RowLayer>;

  // before: the version whose tables it shares; null: it begins with tables without rows.
  Scorer(ModelDescription model, std::shared_ptr<Body> body, const Scorer* before);
  Status LoadDense(const StoredCheckpoint& stored, ThreadPool* pool);
  // Checks that the tables are the model's, and their rows in one format.
  Status CheckTables(const StoredCheckpoint& stored) const;
  Status LoadRows(const StoredCheckpoint& stored, ThreadPool* pool);
  StatusOr<std::shared_ptr<const Layer>> ReadLayer(const StoredCheckpoint& stored) const;
  // Returns the row of a key in the tables for the caller to fill in.
  float* Claim(size_t table, int64_t key);
  // Returns the digest of a row as it is now; of one that is not there, that of nothing.
  Digest RecordOf(size_t table, int64_t key) const;
  // Checks that the weights have the digest that a publication says.
  Status CheckDigest(const std::string& path) const;
  // Writes what serves a key that has no row, when no shared row stands for it either.
  void MakeMissing(int64_t table, int64_t key, float* row) const;
  // Sets rows[u] to the weights of unique id u, made in the worker's memory where they are not
  // there as such.
  void LookUp(Worker* worker) const;
  Status ScoreOn(Rows* rows, Worker* worker, std::vector<float>* logits) const;

  ModelDescription model_;
  std::shared_ptr<Body> body_;
  std::vector<std::optional<KeyedRows>> keyed_;  // by table; without a value: an array
  std::shared_ptr<const Dense> dense_;
  std::vector<std::shared_ptr<const Layer>> layers_;  // oldest first
  Digest rows_digest_;                                // of a publication's rows
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_SCORER_H_
