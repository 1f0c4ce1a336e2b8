#ifndef ELASTOR_CORE_KERNELS_CUDA_LEAF_FOLD_H_
#define ELASTOR_CORE_KERNELS_CUDA_LEAF_FOLD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/leaves.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// Sums over leaves along the leaf tree (core/base/leaf_stack.h) of vectors in device memory.

// A run of a flat array whose elements lie, leaf by leaf, in maps: element i of the run in leaf
// number l (as listed) is data[(i / inner * leaves + l) * inner + i % inner].
struct FoldRun {
  int64_t begin = 0;  // in the flat array
  int64_t size = 0;
  int64_t inner = 1;
  const float* data = nullptr;
};

class LeafFold {
 public:
  // Work of SetLeaves is enqueued on `stream`.
  explicit LeafFold(Stream* stream);

  // The leaves whose vectors will be folded, ascending; `counted`: which of them are there (absent
  // ones are skipped); the nodes that are left, as NodeLeaves says: first present leaves,
  // ascending. Host arrays; copied before the call returns. A captured Fold has its leaves: capture
  // again.
  void SetLeaves(std::span<const int64_t> leaves, const std::vector<bool>& counted,
                 std::span<const int64_t> node_leaves);
  int64_t nodes() const { return nodes_; }

  // nodes[n * node_stride + i] = node n of element range.begin + i, for i in [0, range.size());
  // elements that no run covers are +0. runs: device memory, ascending, disjoint. Without leaves
  // that are there: one node of +0.
  void Fold(Stream& stream, const FoldRun* runs, int64_t run_count, const Range& range,
            float* nodes, int64_t node_stride) const;

  // What happens to every element, leaf by leaf, with a stack of partial sums: leaf number `leaf`
  // is pushed, then the two top sums are added `merges` times; then, at a node's last leaf, the one
  // sum that is left is the node.
  struct Step {
    int32_t leaf;
    int32_t merges;
    int32_t ends_node;
  };

 private:
  Stream* stream_;
  Buffer<Step> steps_;
  int64_t leaves_ = 0;  // as listed
  int64_t nodes_ = 1;
  bool complete_ = false;  // one node, whose leaves are added as those of a complete tree
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_LEAF_FOLD_H_
