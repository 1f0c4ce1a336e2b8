#ifndef ELASTOR_TRAINER_STEP_CUDA_DEVICE_TRAIN_STEP_H_
#define ELASTOR_TRAINER_STEP_CUDA_DEVICE_TRAIN_STEP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "core/base/thread_pool.h"
#include "core/cuda/matmul.h"
#include "core/cuda/runtime.h"
#include "core/graph/cuda/device_executor.h"
#include "core/task/cuda/device_loss.h"
#include "embedding/cuda/device_embedding.h"
#include "trainer/step/cuda/batch_geometry.h"
#include "trainer/step/cuda/batch_upload.h"
#include "trainer/step/cuda/device_dense_optimizer.h"
#include "trainer/step/cuda/device_dense_reducer.h"
#include "trainer/step/cuda/step_kernels.h"
#include "trainer/step/step.h"
#include "trainer/step/step_options.h"

namespace elastor::cuda {

// Streams of a step: `compute` computes it, `route` uploads the next batch and routes its ids,
// `exchange` moves dense gradients between ranks. The host waits for the small kernels of `route`,
// and other ranks wait for `exchange`, so both go before the large kernels that fill the device.
struct StepStreams {
  Stream compute;
  Stream route{StreamPriority::kHigh};
  Stream exchange{StreamPriority::kHigh};
};

struct DeviceStepOptions {
  bool reproducible = true;
  bool fused_network = true;    // DeviceModelOptions
  int64_t evaluation_rows = 0;  // rows of the largest evaluation batch, over all ranks
};

// TrainStep (trainer/step/train_step.h) on a GPU, with the same leaves, tree, exchange and order of
// phases. All leaves of the rank are computed at once; the gradients of dense parameters take one
// product per leaf. Except in fast mode, bits do not depend on the number of ranks, on overlap or
// on graphs, for one GPU model and one version of cuBLAS. They differ from the CPU's.
//
// The host enqueues a whole step, updates included, and waits for the loss alone. The device
// decides whether the updates may proceed (UpdateGate). With overlap the host prepares the next
// batch meanwhile. From the third full batch on, the dense part is launched as captured graphs.
//
// The device communicator has one order of calls, the same on every rank: this batch's rows, losses
// that its gradients need, the next batch's ids, the buckets of dense gradients in the order of
// their completion, gradients of rows, the scalars, new dense weights. The ids read nothing of this
// step, so they do not wait for its backward pass.
template <typename A>
class DeviceTrainStep final : public Step<float> {
 public:
  // Initialises the dense weights. What the arguments point to outlives the object.
  DeviceTrainStep(const TrainStepOptions& options, const DeviceStepOptions& device,
                  const elastor::Graph* graph, DeviceEmbedding* embedding,
                  DeviceCommunicator* communicator, StepStreams* streams, ThreadPool* pool);
  ~DeviceTrainStep() override;

  StatusOr<StepResult> Run(const LocalBatch& batch, const LocalBatch* next, double learning_rate,
                           int64_t requests) override;
  // Calls visit on the pool's threads.
  Status Evaluate(const LocalBatch& batch,
                  const std::function<void(const EvaluatedRows<float>&)>& visit) override;

  Status Settle() override { return OkStatus(); }
  float* weights() override;
  void WeightsChanged() override;
  DeviceDenseOptimizer* optimizer() override { return &optimizer_; }

 private:
  // The parts of a batch that its forward pass needs on the device.
  struct Routed {
    explicit Routed(Stream* upload) : dense(upload) {}
    std::unique_ptr<DeviceEmbedding::Routing> ids;
    BatchUpload dense;
    double weight = 0;  // weight of the whole batch: its rows, or the sum of their weights
  };
  // The buffers from which kernels read a batch. Their addresses are the same at every step.
  struct Inputs {
    Inputs(Stream* stream, int64_t rows, const FeatureShape& features, int64_t label_count,
           bool weighted);
    Buffer<float> numeric;
    Buffer<float> labels;
    Buffer<float> weights;
    Buffer<int32_t> lengths;
    Buffer<StepScalars> scalars;
    PinnedBuffer<StepScalars> host_scalars;
  };
  // A captured part of the dense work. It ends where bucket `bucket` is complete, where the losses
  // that gradients need are to be summed over the ranks, or at the end.
  static constexpr int kBatchLosses = -1, kEnd = -2;
  struct Segment {
    Graph graph;
    int bucket = kEnd;
  };
  // Ends of the phases of a step.
  enum Mark { kBegin, kLookedUp, kComputed, kReduced, kRouted, kSummed, kUpdated, kMarks };

  Status Route(const LocalBatch& batch, Routed* routed);
  const BatchGeometry& GeometryOf(const LocalBatch& batch);
  DevicePass Place(const LocalBatch& batch, const BatchGeometry& geometry, Routed* routed,
                   Inputs* inputs, bool training);
  Status Compute(const LocalBatch& batch, const BatchGeometry& geometry);
  Status EnqueueDense(const DevicePass& pass, const std::function<Status(int)>& ready);
  Status CaptureDense(const DevicePass& pass);
  Status Ready(int bucket);
  Status ExchangeBuckets();
  Status Finish(double learning_rate);
  StatusOr<StepResult> WaitForOutcome();
  Event& mark(Mark mark) { return marks_[turn_][mark]; }
  void AddTimes();
  void TakeProbe(const BatchGeometry& geometry, int probe, std::vector<float>* panels);

  TrainStepOptions options_;
  DeviceStepOptions device_;
  const elastor::Graph* graph_;
  DeviceEmbedding* embedding_;
  DeviceCommunicator* communicator_;
  StepStreams* streams_;
  ThreadPool* pool_;

  DeviceExecutor<A> executor_;
  std::unique_ptr<DeviceLoss> loss_;
  LeafGradients gradients_;
  DeviceDenseReducer reducer_;
  DeviceDenseOptimizer optimizer_;
  Buffer<float> weights_;
  std::vector<float> host_weights_;
  bool host_weights_current_ = false;

  std::map<int64_t, BatchGeometry> geometries_;  // by the batch's rows
  Inputs inputs_;                                // inputs of training batches
  Inputs evaluation_inputs_;
  std::unique_ptr<Routed> routed_;  // this batch
  std::unique_ptr<Routed> next_;    // the next
  bool next_routed_ = false;

  Buffer<double> losses_;                // [device rows][outputs], or [batch_losses][device rows]
  Buffer<DeviceExactSum> batch_losses_;  // sums of the losses that gradients need
  Buffer<float> output_scales_;          // what follows from them
  Buffer<StepSums> sums_;
  Buffer<StepOutcome> outcome_;
  Buffer<UpdateGate> gate_;
  PinnedBuffer<StepOutcome> host_outcome_;
  Event summed_;                       // the outcome has reached the host
  std::vector<Event> bucket_events_;   // by bucket: complete on the computing stream
  std::vector<int> complete_buckets_;  // of this step, in the order of their completion
  Event exchanged_;

  int full_batches_ = 0;  // number of full batches seen
  std::vector<std::unique_ptr<Segment>> segments_;
  // This step and the one before take turns, because an update's end is known a step later.
  Event marks_[2][kMarks];
  int turn_ = 0;
  bool update_marked_ = false;  // whether the other turn has marked its update's end
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TRAINER_STEP_CUDA_DEVICE_TRAIN_STEP_H_
