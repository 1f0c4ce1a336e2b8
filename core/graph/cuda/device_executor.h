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
// All activations lie in one piece of memory, where what is not alive at once shares room: what a
// call returns is valid as long as is said there.
template <typename A>
class DeviceExecutor {
 public:
  // The graph is copied; stream outlives the object. REQUIRES: the logits are a linear map's.
  DeviceExecutor(const elastor::Graph& graph, const DeviceModelOptions& options, Stream* stream,
                 DeviceRewrites rewrites = DeviceRewrites::kAll);

  // Makes memory for passes of up to `shape.rows()` rows and `shape.leaves` leaves. Where it grows,
  // it waits for the stream and everything moves.
  void Reserve(const LeafShape& shape);
  // New parameter values, by work enqueued before; the flat array stays in place. (Copies rounded
  // for the products are made here.)
  void SetWeights(const float* weights) { environment_.SetWeights(weights); }

  // E: [rows, 1, n k], which the caller fills before every Forward but for the numeric fields'
  // features (the first), padding with zeros; and its gradient, valid from Backward to the next
  // pass.
  Activations<A> Embeddings(const LeafShape& shape) const;
  Activations<const A> EmbeddingGradients(const LeafShape& shape) const;
  // [rows][outputs], valid from Forward to Backward; dlogits, which the caller fills in between.
  float* Logits() const;
  float* LogitGradients() const;

  void Forward(const DevicePass& pass);
  // After Forward with the same pass, which was for training.
  void Backward(const DevicePass& pass, LeafGradients* gradients);

  // What probe `probe` measures, row-major [rows, tokens, features]. Valid from Forward to the next
  // call.
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
  // Empty where `view` is.
  Activations<A> View(const LeafShape& shape, const BufferView& view) const;

  elastor::Graph graph_;
  DeviceEnvironment<A> environment_;
  std::vector<std::unique_ptr<DeviceKernelContext<A>>> contexts_;  // by node
  std::vector<std::unique_ptr<DeviceKernel<A>>> kernels_;
  Schedule schedule_;

  // Memory: the schedule's buffers, then those of the kernels' contexts, then the executor's own.
  std::vector<BufferLife> lives_;
  std::vector<DeviceBytes> bytes_;
  std::vector<int64_t> offsets_;
  Buffer<char> memory_;
  // By node: the first of its kernel's slots as it runs forward, and as its backward pass reads
  // them, which for a node that runs forward once more are others.
  std::vector<int> first_slot_;
  std::vector<int> first_recomputed_;
  int probe_ = -1;   // a probed value that is not row-major, copied
  int logits_ = -1;  // where the schedule's are rounded
  int dlogits_ = -1;
  int64_t rows_ = 0;
  int64_t leaves_ = 0;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_GRAPH_CUDA_DEVICE_EXECUTOR_H_
