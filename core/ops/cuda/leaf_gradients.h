#ifndef ELASTOR_CORE_OPS_CUDA_LEAF_GRADIENTS_H_
#define ELASTOR_CORE_OPS_CUDA_LEAF_GRADIENTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/cuda/runtime.h"
#include "core/kernels/cuda/leaf_fold.h"
#include "core/parameters/parameter_layout.h"

namespace elastor::cuda {

// The dense gradients of every leaf that is computed at once, in device memory. A parameter of
// `maps` equal parts (weights of tokens) lies as [maps][leaves][size / maps], so that all its
// gradients are one batch of products.
class LeafGradients {
 public:
  // layout outlives the object.
  LeafGradients(const ParameterLayout* layout, Stream* stream);

  // Makes room for exactly `leaves` leaves, the number in every pass. Call it outside of graphs.
  void Reserve(int64_t leaves);
  int64_t leaves() const { return leaves_; }

  // Begins a backward pass. The Close that completes bucket b calls bucket_ready(b); at that time
  // all work on its gradients is enqueued.
  void Begin(std::function<void(int bucket)> bucket_ready);

  struct Target {
    float* data;
    int64_t map_stride;
    int64_t leaf_stride;
  };
  // Returns where a parameter's gradients go. Open each parameter exactly once per backward pass,
  // always with the same `maps`; work on the stream writes the gradients before Close.
  Target Open(int parameter, int64_t maps);
  void Close(int parameter);

  // Returns a bucket's runs for LeafFold, in device memory. REQUIRES: the bucket has been complete
  // once. The first call after Reserve uploads them, outside of graphs.
  const FoldRun* runs(int bucket);
  int64_t run_count(int bucket) const;

 private:
  struct Bucket {
    explicit Bucket(Stream* stream) : runs(stream) {}
    int parameters = 0;
    int open = 0;  // number of parameters that are not closed yet
    Buffer<FoldRun> runs;
    bool runs_ready = false;
  };
  const ParameterLayout* layout_;
  Stream* stream_;
  int64_t leaves_ = 0;
  Buffer<float> memory_;
  std::vector<int64_t> maps_;  // number of maps of every parameter; 0: not opened yet
  std::vector<Bucket> buckets_;
  std::function<void(int)> bucket_ready_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_OPS_CUDA_LEAF_GRADIENTS_H_
