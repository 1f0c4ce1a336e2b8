#ifndef ELASTOR_EMBEDDING_CUDA_DEVICE_EMBEDDING_H_
#define ELASTOR_EMBEDDING_CUDA_DEVICE_EMBEDDING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "core/base/thread_pool.h"
#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/cuda/update_gate.h"
#include "embedding/embedding_options.h"
#include "embedding/embedding_state.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"

namespace elastor::cuda {

// ShardedEmbedding (embedding/sharded_embedding.h) on devices: the same tables, plan, exchange and
// order of additions, hence, given the same gradients, the same bits; activations and their
// gradients are A (float or BFloat16), rows and slots float.
//
// Streams: RouteIds works on the stream `route`, everything else on `compute`; they are ordered by
// events inside. The host waits for counts only, in RouteIds and in an evaluation's Lookup. One
// call at a time; on one rank, RouteIds for one Routing may run beside the calls for another.
class DeviceEmbedding final : public EmbeddingState<float> {
 public:
  struct Options : EmbeddingOptions {
    // Most bytes of device memory for rows and slots. Tables beyond it stay in the host's memory,
    // in page-locked pages that the device reads; the remaining bytes cache their hot rows. 0:
    // everything is on the device.
    int64_t device_bytes = 0;
  };

  class Routing {
   public:
    ~Routing();

   private:
    friend class DeviceEmbedding;
    struct State;
    explicit Routing(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  // plan, communicator, streams and pool outlive the object.
  DeviceEmbedding(Options options, const ShardPlan* plan, DeviceCommunicator* communicator,
                  Stream* compute, Stream* route, ThreadPool* pool);
  ~DeviceEmbedding() override;

  std::unique_ptr<Routing> MakeRouting() const;

  // Returns the ids in page-locked memory, in the form that RouteIds copies to the device, so that
  // RouteIds only enqueues the copies. Thread-safe. REQUIRES: StageIds of this class returned
  // `memory`, or it is null.
  std::unique_ptr<StagedIds> StageIds(const SparseBatch& batch,
                                      std::unique_ptr<StagedIds> memory) const;

  // Works as ShardedEmbedding::RouteIds. The batch is copied before the call returns. If StageIds
  // of this embedding has staged the batch, the staged ids and offsets are used.
  Status RouteIds(const SparseBatch& batch, Routing* routing);

  enum class Purpose { kTrain, kEvaluate };
  Status Lookup(Purpose purpose, Routing* routing);

  // Pools the bags of all local rows into the features of e [rows, 1, sum of the fields' widths];
  // local_row[r], in device memory: the local row of device row r; -1: padding, which becomes 0.
  template <typename A>
  void ReturnRows(const Routing& routing, const int32_t* local_row, Activations<A> e) const;

  // Turns the gradient of those activations into gradients of rows on their owners, with L2. Adds
  // to the sums, in device memory, as ShardedEmbedding::RouteGradients does. device_row[r], in
  // device memory: the device row of local row r. On one rank, Update reads de and device_row
  // again.
  template <typename A>
  Status RouteGradients(int64_t global_rows, const int32_t* device_row, Activations<const A> de,
                        Routing* routing, DeviceExactSum* squared_norm,
                        DeviceExactSum* squared_weights);

  // Takes the optimizer's step on the rows this rank owns. gate: in device memory.
  void Update(const UpdateGate* gate, double learning_rate, int64_t step, Routing* routing);

  int64_t output_features() const;

  // EmbeddingState's calls. They wait for the streams.
  void AddToDigest(Digest* digest) const override;
  void ForEachRow(const std::function<void(int table, int64_t key, const float* weights,
                                           const float* slots)>& fn) const override;
  void SetRow(int table, int64_t key, const float* weights, const float* slots) override;
  void ForgetRows() override;
  bool Owns(int table, int64_t partition) const override;
  std::vector<int64_t> CountRows(int table) const override;
  void ForEachRowOf(int table, const Range& partitions,
                    const std::function<void(std::span<const int64_t> keys,
                                             const float* const* rows)>& fn) const override;
  OptimizerKind optimizer_kind() const override;
  ThreadPool* pool() const override;
  int64_t memory_bytes() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_DEVICE_EMBEDDING_H_
