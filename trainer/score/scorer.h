#ifndef ELASTOR_TRAINER_SCORE_SCORER_H_
#define ELASTOR_TRAINER_SCORE_SCORER_H_

#include <cfenv>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"
#include "core/task/task.h"
#include "embedding/embedding_layout.h"
#include "embedding/row_store.h"
#include "trainer/checkpoint/checkpoint_metadata.h"
#include "trainer/checkpoint/stored_checkpoint.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"

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
// of modes evaluate and predict, to the last bit. Thread-safe.
class Scorer {
 public:
  // Reads RUN/model or a checkpoint and verifies every byte that it uses. `pool`, which may be
  // null, shares the work of opening. User error in one line naming the file.
  static StatusOr<std::unique_ptr<Scorer>> Open(const std::string& model_dir, ThreadPool* pool);
  ~Scorer();

  const ModelDescription& model() const { return model_; }
  const Task& task() const { return task_; }
  const Graph& graph() const { return graph_; }

  // Replaces *logits by [rows][task().outputs()]. Leaves *rows undefined, but its memory may be
  // used again. Computes on the calling thread, with canonical arithmetic meanwhile. User error
  // naming field and id when an id is outside its table, or row and field when a number is infinite
  // (NaN is a missing one); diverged when a logit is not finite. number_of tells what the line
  // calls a row; null: its place in *rows.
  Status Score(Rows* rows, std::vector<float>* logits,
               const std::function<int64_t(int64_t)>& number_of = nullptr) const;

  // The embedding rows that export and lookups read, by table of tables().
  const std::vector<RowStore<float>>& stores() const { return stores_; }
  const EmbeddingLayout& layout() const { return layout_; }
  const std::vector<float>& weights() const { return weights_; }

 private:
  struct Worker;
  Scorer(ModelDescription model, ResolvedModel resolved);
  Status LoadWeights(const StoredCheckpoint& stored);
  Status LoadRows(const StoredCheckpoint& stored, ThreadPool* pool);
  Status ScoreOn(Rows* rows, Worker* worker, std::vector<float>* logits) const;

  const ModelDescription model_;
  const Task task_;
  const Graph graph_;
  const EmbeddingLayout layout_;
  std::vector<RowStore<float>> stores_;  // by table
  std::vector<float> weights_;
  CpuExecutor<float> executor_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Worker>> idle_;  // guarded by mutex_
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_SCORER_H_
