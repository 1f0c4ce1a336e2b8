#ifndef ELASTOR_TRAINER_TRAIN_STEP_H_
#define ELASTOR_TRAINER_TRAIN_STEP_H_

#include <array>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "collective/communicator.h"
#include "collective/dense_reduce.h"
#include "collective/worker.h"
#include "core/base/digest.h"
#include "core/base/thread_pool.h"
#include "core/models/model.h"
#include "embedding/sharded_embedding.h"
#include "trainer/batch.h"
#include "trainer/dense_optimizer.h"
#include "trainer/gradient_fold.h"

namespace elastor {

struct TrainStepOptions {
  int64_t leaves = 16;  // V
  uint64_t seed = 0;
  double clip_norm = 0;     // 0: no clipping
  double embedding_l2 = 0;  // for the reported penalty
  bool overlap = false;     // ids of the next batch and dense slices travel during computation
  DenseOptimizerOptions dense;
};

// Where the time of steps went on this rank, in seconds, added up.
struct StepTimes {
  double route_ids = 0;  // unique ids and their exchange (waiting for it, when overlapped)
  double lookup = 0;     // gather and rows home
  double compute = 0;    // forward, backward, sums over own leaves
  double reduce = 0;     // dense slices
  double route_gradients = 0;
  double scalars = 0;
  double update = 0;  // optimizers, weights to everybody, repacking
};

struct StepResult {
  double loss = 0;           // mean cross-entropy
  double l2 = 0;             // penalty: sum of lambda/2 w^2
  double gradient_norm = 0;  // before clipping
};

// The training state of one rank and the step that advances it (docs/design.md, "Step order").
// Every rank makes the same calls. Bits do not depend on ranks, threads or `overlap`.
template <typename T>
class TrainStep {
 public:
  // model, embedding, communicator and pool outlive the object. Initialises the dense weights.
  TrainStep(const TrainStepOptions& options, Model<T>* model, ShardedEmbedding<T>* embedding,
            Communicator* communicator, ThreadPool* pool);
  ~TrainStep();

  // One step on `batch`. `next`: the batch of the next call, whose ids may be exchanged meanwhile;
  // null when there is none. Diverged when a loss or the gradient norm is not finite; the state is
  // then unchanged but for rows made at first touch.
  StatusOr<StepResult> Run(const LocalBatch& batch, const LocalBatch* next, double learning_rate);

  // Forward passes only, without dropout; rows are computed where Run would compute them. visit
  // is called on the computing threads: rows [pass_begin, pass_begin + pass.rows) of the batch,
  // their embeddings, logits and cross-entropies.
  struct Evaluated {
    int thread;
    int64_t begin;
    const Pass<T>& pass;
    Panels<const T> embeddings;
    Panels<const T> logits;
    const double* losses;
  };
  Status Evaluate(const LocalBatch& batch, const std::function<void(const Evaluated&)>& visit);

  int64_t steps() const { return steps_; }
  T* weights() { return weights_.data(); }  // the flat array; call WeightsChanged after writing
  void WeightsChanged() { model_->Prepare(weights_.data()); }
  const StepTimes& times() const { return times_; }

  // This rank's share of the digest of weights and slots, dense and embeddings.
  void AddToDigest(Digest* digest) const;

 private:
  struct Thread;
  using Routing = typename ShardedEmbedding<T>::Routing;
  struct Scalars {
    ExactSum loss;
    ExactSum squared_norm;
    ExactSum penalty;
    ExactSum squared_rows;  // sum w^2 of embedding rows
  };

  Status Compute(const LocalBatch& batch, const LocalBatch* next, Scalars* scalars);
  void ComputeLeaf(const LocalBatch& batch, int64_t leaf, bool last_leaf, int thread);
  Status ReduceBucket(int bucket, int64_t batch_rows);
  Status SumScalars(Scalars* scalars);
  Status Apply(double scale, double learning_rate);
  Pass<T> MakePass(const LocalBatch& batch, int64_t begin, int64_t rows, int thread,
                   bool training) const;

  TrainStepOptions options_;
  Model<T>* model_;
  ShardedEmbedding<T>* embedding_;
  Communicator* communicator_;
  ThreadPool* pool_;
  Range own_leaves_;
  std::vector<Range> slices_;  // of every bucket, this rank's
  DenseReducer<T> reducer_;
  DenseOptimizer<T> optimizer_;
  std::vector<T> weights_;
  std::unique_ptr<Routing> routing_;       // of this batch
  std::unique_ptr<Routing> next_routing_;  // of the next
  bool next_routed_ = false;
  std::vector<std::unique_ptr<Thread>> threads_;
  int e_, de_, logits_, dlogits_;  // workspace slots
  WorkspacePlan workspace_plan_;
  int64_t steps_ = 0;
  StepTimes times_;
  std::unique_ptr<CommunicationWorker> worker_;  // with overlap
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_TRAIN_STEP_H_
