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
#include "core/base/thread_pool.h"
#include "core/models/model.h"
#include "embedding/sharded_embedding.h"
#include "trainer/batch.h"
#include "trainer/dense_optimizer.h"
#include "trainer/gradient_fold.h"

namespace elastor {

struct TrainStepOptions {
  int64_t leaves = 16;     // V
  int64_t batch_rows = 0;  // of the largest training batch; only for Model::whole_leaf
  // Whether all batches have weights, on every rank; else none has.
  bool sample_weights = false;
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

// Bits that a rank may set for all to know (to stop, to write a checkpoint); what they mean is the
// caller's affair.
inline constexpr int kRequestBits = 4;

struct StepResult {
  double loss = 0;                               // mean cross-entropy, weighted
  double l2 = 0;                                 // penalty: sum of lambda/2 w^2
  double gradient_norm = 0;                      // before clipping
  std::array<int64_t, kRequestBits> requests{};  // how many ranks set each bit
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
  // null when there is none. requests: this rank's bits, which travel with the loss. Diverged when
  // a loss or the gradient norm is not finite; the state is then unchanged but for rows made at
  // first touch.
  StatusOr<StepResult> Run(const LocalBatch& batch, const LocalBatch* next, double learning_rate,
                           int64_t requests = 0);

  // Forward passes only, without dropout; rows are computed where Run would compute them. visit
  // is called on the computing threads: rows [pass_begin, pass_begin + pass.rows) of the batch,
  // their embeddings, logits and cross-entropies, unweighted.
  struct Evaluated {
    int thread;
    int64_t begin;
    const Pass<T>& pass;
    Panels<const T> embeddings;
    Panels<const T> logits;
    const double* losses;
  };
  Status Evaluate(const LocalBatch& batch, const std::function<void(const Evaluated&)>& visit);

  // Steps done: numbers the next step's random choices. Set to continue a run.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // Steps of an earlier run whose optimizer state this one continues: bias correction counts them.
  void set_optimizer_step_offset(int64_t offset) { optimizer_step_offset_ = offset; }
  T* weights() { return weights_.data(); }  // the flat array; call WeightsChanged after writing
  void WeightsChanged() { model_->Prepare(weights_.data()); }
  DenseOptimizer<T>* optimizer() { return &optimizer_; }
  const StepTimes& times() const { return times_; }

 private:
  struct Thread;
  // What a batch needs of other ranks before its forward pass.
  struct Routed {
    std::unique_ptr<typename ShardedEmbedding<T>::Routing> ids;
    double weight = 0;  // of the whole batch: its rows, or the sum of their weights
  };
  struct Scalars {
    ExactSum loss;
    ExactSum squared_norm;
    ExactSum penalty;
    ExactSum squared_rows;  // sum w^2 of embedding rows
    std::array<int64_t, kRequestBits> requests{};
  };

  Status Route(const LocalBatch& batch, Routed* routed);
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
  int64_t pass_rows_;  // of a training pass, at most
  Range own_leaves_;
  // Fewer leaves than threads, and the model's passes are worth sharing: all threads compute each
  // leaf, with the workspace of thread 0.
  bool share_leaves_;
  std::vector<Range> slices_;  // of every bucket, this rank's
  DenseReducer<T> reducer_;
  DenseOptimizer<T> optimizer_;
  std::vector<T> weights_;
  Routed routed_;  // this batch
  Routed next_;    // the next
  bool next_routed_ = false;
  std::vector<std::unique_ptr<Thread>> threads_;
  int e_, de_, logits_, dlogits_;  // workspace slots
  WorkspacePlan workspace_plan_;
  int64_t steps_ = 0;
  int64_t optimizer_step_offset_ = 0;
  StepTimes times_;
  std::unique_ptr<CommunicationWorker> worker_;  // with overlap
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_TRAIN_STEP_H_
