#ifndef ELASTOR_CORE_KERNELS_CUDA_LEAF_FOLD_H_
#define ELASTOR_CORE_KERNELS_CUDA_LEAF_FOLD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/leaves.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// Sums over leaves along the leaf tree (core/base/leaf_stack.h) of vectors in device memory.

// A run of a flat array in device memory, for which every leaf has its own values. A run is cut
// into maps of `inner` elements, and the leaves' values of a map lie one after another: element i
// of the run in the l-th leaf that was listed is data[(i / inner * leaves + l) * inner + i %
// inner].
struct FoldRun {
  int64_t begin = 0;  // in the flat array
  int64_t size = 0;
  int64_t inner = 1;
  const float* data = nullptr;
};

class LeafFold {
 public:
  // SetLeaves enqueues its work on `stream`.
  explicit LeafFold(Stream* stream);

  // Lists the leaves whose vectors will be folded, ascending. counted[i] says whether leaves[i] is
  // present; absent ones are skipped. node_leaves: the first present leaf of every node that
  // results, ascending (NodeLeaves). All are host arrays, which are copied before the call returns.
  // A captured Fold keeps its leaves: capture it again after this call.
  void SetLeaves(std::span<const int64_t> leaves, const std::vector<bool>& counted,
                 std::span<const int64_t> node_leaves);
  int64_t nodes() const { return nodes_; }

  // nodes[n * node_stride + i] = node n of element range.begin + i, for i in [0, range.size());
  // elements that no run covers are +0. runs: device memory, ascending, disjoint. Where no leaf is
  // present, the result is one node of +0.
  void Fold(Stream& stream, const FoldRun* runs, int64_t run_count, const Range& range,
            float* nodes, int64_t node_stride) const;

  // One step of the fold of every element, leaf by leaf, with a stack of partial sums: leaf number
  // `leaf` is pushed, then the two top sums are added `merges` times; then, at a node's last leaf,
  // the one remaining sum is the node.
  struct Step {
    int32_t leaf;
    int32_t merges;
    int32_t ends_node;
  };

 private:
  Stream* stream_;
  Buffer<Step> steps_;
  int64_t leaves_ = 0;  // number of listed leaves
  int64_t nodes_ = 1;
  bool complete_ = false;  // true if there is one node whose leaves form a complete tree
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_LEAF_FOLD_H_
