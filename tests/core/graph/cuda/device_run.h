#ifndef ELASTOR_TESTS_CORE_GRAPH_CUDA_DEVICE_RUN_H_
#define ELASTOR_TESTS_CORE_GRAPH_CUDA_DEVICE_RUN_H_

#include <cstdint>
#include <vector>

#include "core/graph/cuda/device_executor.h"
#include "core/graph/graph.h"

namespace elastor::cuda {

// A global batch of a few leaves of uneven length, all numbers representable in BFloat16.
struct LeafBatch {
  std::vector<int32_t> counts;  // rows of a leaf
  int64_t leaf_rows = 0;        // device rows
  int64_t first_row = 0;        // of the epoch
  uint32_t step = 0;
  std::vector<float> numeric;     // [rows][numeric fields], some missing
  std::vector<int32_t> lengths;   // [rows][encoded sequences]
  std::vector<float> embeddings;  // [rows][features of E]
  std::vector<float> dlogits;     // [rows][outputs]

  int64_t leaves() const { return static_cast<int64_t>(counts.size()); }
  int64_t rows() const { return FirstRow(leaves()); }
  int64_t FirstRow(int64_t leaf) const;
};
LeafBatch MakeLeafBatch(const elastor::Graph& graph, std::vector<int32_t> counts,
                        int64_t leaf_rows);

// Parameters that are not at their initial 0 and 1.
std::vector<float> MakeWeights(const ParameterLayout& layout);

// What a pass gives; rows in order, without padding.
struct PassResult {
  std::vector<double> logits;
  std::vector<double> embedding_gradients;     // [rows][features of E]
  std::vector<std::vector<double>> gradients;  // of every leaf, flat
  std::vector<std::vector<double>> probes;     // [rows][features]
};

// The CPU's in double, leaf after leaf, absent ones left out (empty gradients).
PassResult RunOnHost(const elastor::Graph& graph, const std::vector<float>& weights,
                     const LeafBatch& batch, uint64_t seed, bool training);

// The device's, for leaves [begin, begin + count) of the batch in one call.
template <typename A>
class DeviceRun {
 public:
  // Uploads the batch's part and the weights. graph outlives the object.
  DeviceRun(const elastor::Graph& graph, const std::vector<float>& weights, const LeafBatch& batch,
            int64_t begin, int64_t count, const DeviceModelOptions& options,
            DeviceRewrites rewrites = DeviceRewrites::kAll);

  void SetStep(uint32_t step) { Copy(stream_, step_.data(), &step, 1); }
  // Enqueues a training pass (or one without Backward), and copies of what it gives for a while.
  void Enqueue(bool training);
  // Waits for it.
  PassResult Result(bool training);

  Stream& stream() { return stream_; }
  DeviceExecutor<A>& executor() { return executor_; }
  const DevicePass& pass() const { return pass_; }
  LeafGradients& gradients() { return gradients_; }
  // Buckets in the order in which the last Backward completed them.
  const std::vector<int>& ready() const { return ready_; }
  // As they lie in memory, padding too: for what must be 0 there.
  std::vector<double> DeviceEmbeddingGradients();

 private:
  std::vector<double> RealRows(const std::vector<double>& device_rows) const;

  Stream stream_;
  const elastor::Graph& graph_;
  DeviceExecutor<A> executor_;
  LeafGradients gradients_;
  std::vector<int32_t> host_local_row_;
  Buffer<float> weights_;
  Buffer<A> embeddings_;
  Buffer<float> dlogits_;
  Buffer<float> numeric_;
  Buffer<int32_t> lengths_;
  Buffer<int32_t> local_row_;
  Buffer<int32_t> counts_;
  Buffer<int64_t> first_row_;
  Buffer<uint32_t> step_;
  Buffer<int64_t> batch_rows_;
  DevicePass pass_;
  std::vector<int> ready_;
  // Of the last pass.
  Buffer<float> logits_;
  std::vector<Buffer<A>> probes_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_GRAPH_CUDA_DEVICE_RUN_H_
