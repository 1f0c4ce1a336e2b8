#ifndef ELASTOR_TRAINER_STEP_TRAIN_STEP_H_
#define ELASTOR_TRAINER_STEP_TRAIN_STEP_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "collective/communicator.h"
#include "collective/dense_reduce.h"
#include "collective/worker.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"
#include "core/task/loss.h"
#include "embedding/sharded_embedding.h"
#include "trainer/data/batch.h"
#include "trainer/step/dense_optimizer.h"
#include "trainer/step/gradient_fold.h"
#include "trainer/step/step.h"
#include "trainer/step/step_calls.h"
#include "trainer/step/step_options.h"
#include "trainer/step/thread_shares.h"

namespace elastor {

// The step on the CPU. Bits do not depend on ranks, threads or `overlap`.
template <typename T>
class TrainStep final : public Step<T> {
 public:
  // graph, embedding, communicator and pool outlive the object. Initialises the dense weights.
  TrainStep(const TrainStepOptions& options, const Graph* graph, ShardedEmbedding<T>* embedding,
            Communicator* communicator, ThreadPool* pool);
  ~TrainStep() override;

  StatusOr<StepResult> Run(const LocalBatch& batch, const LocalBatch* next, double learning_rate,
                           int64_t requests) override;
  // Computes each row on the thread on which Run would compute it, and calls visit on that thread.
  Status Evaluate(const LocalBatch& batch,
                  const std::function<void(const EvaluatedRows<T>&)>& visit) override;

  Status Settle() override;
  T* weights() override {
    CHECK(!late_weights_) << "weights that other ranks own have not come";
    return weights_.data();
  }
  void WeightsChanged() override { executor_.Prepare(weights_.data(), pool_); }
  DenseOptimizer<T>* optimizer() override { return &optimizer_; }

 private:
  struct Thread;
  // The data from other ranks that a batch needs before its forward pass.
  struct Routed {
    std::unique_ptr<typename ShardedEmbedding<T>::Routing> ids;
    double weight = 0;  // weight of the whole batch: its rows, or the sum of their weights
  };
  struct Scalars {
    ExactSum loss;
    ExactSum squared_norm;
    ExactSum penalty;
    ExactSum squared_rows;  // sum w^2 of embedding rows
    std::array<int64_t, kRequestBits> requests{};
    std::vector<int64_t> keyed_rows;  // ShardedEmbedding::CountKeyedRows
  };

  using RouteThreads = typename ShardedEmbedding<T>::RouteThreads;
  Status Route(const LocalBatch& batch, RouteThreads threads, Routed* routed);
  void PlanPasses(const LocalBatch& batch);
  void OnThreads(const std::function<void(int)>& work);
  Status SumBatchLosses(const LocalBatch& batch);
  Status Compute(const LocalBatch& batch, const LocalBatch* next, Scalars* scalars);
  void ComputePass(const LocalBatch& batch, const StepPass& planned, int thread);
  Pass<T> PlacePass(const LocalBatch& batch, const StepPass& planned, int thread) const;
  int64_t LocalRow(const LocalBatch& batch, const StepPass& planned) const;
  template <typename View, typename Work>
  void ShareRows(const Pass<T>& pass, int64_t begin, View view, const Work& work);
  void ForwardPass(const Pass<T>& pass, int64_t begin);
  LossRows<T> LossOf(const LocalBatch& batch, const Pass<T>& pass, int64_t row,
                     const LeafRows& leaf) const;
  void PostLateWeights(std::vector<std::future<Status>>* jobs);
  void AwaitWeights(int bucket, int thread);
  Status ReduceBucket(int bucket, int64_t batch_rows);
  Status SumScalars(Scalars* scalars);
  Status Apply(double scale, double learning_rate, bool goes_on, const Scalars& scalars);
  Pass<T> MakePass(const LocalBatch& batch, int64_t begin, const PassLeaves& leaves, int thread,
                   bool training) const;

  TrainStepOptions options_;
  const Graph* graph_;
  CpuExecutor<T> executor_;
  std::unique_ptr<Loss<T>> loss_;
  ShardedEmbedding<T>* embedding_;
  Communicator* communicator_;
  ThreadPool* pool_;
  int64_t pass_rows_;             // most rows of a training pass
  int64_t evaluation_pass_rows_;  // most rows of an evaluation pass
  Range own_leaves_;
  bool one_leaf_a_pass_;
  // Whether all threads compute each leaf, with the workspace of thread 0 (SharesLeaves).
  bool share_leaves_;
  std::vector<Range> slices_;      // this rank's slice of every bucket
  std::vector<int> reduce_order_;  // of the buckets
  DenseReducer<T> reducer_;
  DenseOptimizer<T> optimizer_;
  std::vector<T> weights_;
  Routed routed_;  // this batch
  Routed next_;    // the next
  bool next_routed_ = false;
  // Whether other ranks' slices of the new weights come beside the next computation, and whether
  // they have yet to.
  const bool may_come_late_;
  bool late_weights_ = false;
  // Buckets that have come, and by bucket the threads that have repacked their part.
  std::atomic<int> buckets_there_;
  std::vector<std::atomic<int>> repacked_;
  std::vector<double> gradient_factors_;  // of this batch; empty if the task needs no means
  std::vector<std::unique_ptr<Thread>> threads_;
  std::unique_ptr<CommunicationWorker> worker_;  // with overlap
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_TRAIN_STEP_H_
