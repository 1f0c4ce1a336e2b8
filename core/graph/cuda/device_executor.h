#ifndef ELASTOR_CORE_GRAPH_CUDA_DEVICE_EXECUTOR_H_
#define ELASTOR_CORE_GRAPH_CUDA_DEVICE_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/cuda/runtime.h"
#include "core/graph/graph.h"
#include "core/graph/schedule.h"
#include "core/kernels/cuda/activations.h"
#include "core/ops/cuda/kernel.h"

namespace elastor::cuda {

// Rewrites that the executor applies; tests leave them out to show that no bit changes.
enum class DeviceRewrites { kAll, kNone };

// Runs a graph on the device, for all leaves of a rank at once. Activations are A (float or
// BFloat16); parameters, their gradients and the logits are float. Calls only enqueue work on the
// stream, unless said otherwise.
//
// All activations lie in one piece of memory, where values that are not alive at the same time
// share room. Each call states how long its result is valid.
template <typename A>
class DeviceExecutor {
 public:
  // The graph is copied; stream outlives the object. REQUIRES: a linear map, a
  // logit sum, a joint logit or a mean logit computes the logits.
  DeviceExecutor(const elastor::Graph& graph, const DeviceModelOptions& options, Stream* stream,
                 DeviceRewrites rewrites = DeviceRewrites::kAll);

  // Makes memory for passes of up to `shape.rows()` rows and `shape.leaves` leaves. Where it grows,
  // it waits for the stream and everything moves.
  void Reserve(const LeafShape& shape);
  // Takes new parameter values, which earlier enqueued work has written; the flat array stays in
  // place. (Copies rounded for the products are made here.)
  void SetWeights(const float* weights) { environment_.SetWeights(weights); }

  // Returns E: [rows, 1, n k], and its gradient, which is valid from Backward to the next pass.
  // Before every Forward the caller fills E except for the numeric fields' features (the first
  // ones), and padding with zeros.
  Activations<A> Embeddings(const LeafShape& shape) const;
  Activations<const A> EmbeddingGradients(const LeafShape& shape) const;
  // Returns the logits [rows][outputs], valid from Forward to Backward, and their gradient, which
  // the caller fills in between.
  float* Logits() const;
  float* LogitGradients() const;

  void Forward(const DevicePass& pass);
  // Called after a training Forward with the same pass.
  void Backward(const DevicePass& pass, LeafGradients* gradients);

  // Returns the value of probe `probe`, row-major [rows, tokens, features]. Valid from Forward to
  // the next call.
  Activations<const A> ProbeOutput(const LeafShape& shape, int probe);

 private:
  static constexpr bool kRounded = !std::is_same_v<A, float>;

  void MakeKernels();
  // Adds a piece of memory that is in use from step `first` to step `last` of the schedule; returns
  // its number.
  int Declare(int first, int last, const DeviceBytes& bytes);
  void DeclareMemory();
  // The slots of a node's kernel are the pieces of memory from `first_slot` on.
  void GiveMemory(int node, int first_slot);
  template <typename T>
  T* Data(int number) const {
    return reinterpret_cast<T*>(memory_.data() + offsets_[number]);
  }
  // Returns the activations of a view; empty if `view` is empty.
  Activations<A> View(const LeafShape& shape, const BufferView& view) const;

  elastor::Graph graph_;
  DeviceEnvironment<A> environment_;
  std::vector<std::unique_ptr<DeviceKernelContext<A>>> contexts_;  // by node
  std::vector<std::unique_ptr<DeviceKernel<A>>> kernels_;
  Schedule schedule_;

  // Pieces of memory: first the schedule's buffers, then the kernels' slots, then the executor's
  // own pieces.
  std::vector<BufferLife> lives_;
  std::vector<DeviceBytes> bytes_;
  std::vector<int64_t> offsets_;
  Buffer<char> memory_;
  // By node: the first of its kernel's slots for the forward run, and for the values that its
  // backward pass reads. The two differ for a node that runs forward once more.
  std::vector<int> first_slot_;
  std::vector<int> first_recomputed_;
  int probe_ = -1;   // a probed value that is not row-major, copied
  int logits_ = -1;  // the logits in float, a piece of their own if the schedule's are rounded
  int dlogits_ = -1;
  int64_t rows_ = 0;
  int64_t leaves_ = 0;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_GRAPH_CUDA_DEVICE_EXECUTOR_H_
