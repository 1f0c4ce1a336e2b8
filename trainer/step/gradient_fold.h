#ifndef ELASTOR_TRAINER_STEP_GRADIENT_FOLD_H_
#define ELASTOR_TRAINER_STEP_GRADIENT_FOLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collective/leaf_tree.h"
#include "core/base/leaves.h"
#include "core/parameters/gradient_sink.h"
#include "core/parameters/parameter_layout.h"

namespace elastor {

// The gradient sink of training. It sums one thread's passes along the leaf tree, bucket by bucket.
// If a pass's leaves are the right sibling of the node already there, its kernels add straight into
// that node's buffer. There is one per computing thread; thread-compatible.
template <typename T>
class GradientFold final : public GradientSink<T> {
 public:
  // `leaves` are the thread's. layout outlives the sink.
  GradientFold(const ParameterLayout* layout, const Range& leaves);

  // Forgets the last step. Calls bucket_ready(bucket) when a bucket is complete, while the last
  // pass runs.
  void BeginStep(std::function<void(int bucket)> bucket_ready);
  // Place of a backward pass in the leaf tree: the node that it covers. Nodes come in ascending
  // order. A node that is one leaf may take several passes, whose gradients are added in order.
  struct PassPlace {
    int64_t leaf;        // the node's first present leaf
    int64_t next_leaf;   // the first leaf behind the node
    bool first_of_node;  // the node's first pass
    bool last_of_node;
    bool last_node;  // no other node with rows follows on this thread
  };
  void BeginPass(const PassPlace& place);
  // Ends the step of a thread that has no present leaves.
  void FinishWithoutLeaves();

  typename GradientSink<T>::Target Open(int parameter) override;
  void Close(int parameter) override;

  // Returns this thread's canonical nodes of a bucket. REQUIRES: the bucket is ready.
  std::span<const typename TreeFold<T>::Node> nodes(int bucket) const {
    return buckets_[bucket].fold.nodes();
  }

 private:
  struct Bucket {
    Bucket(const Range& leaves, const Range& range) : fold(leaves, range.size()), range(range) {}
    TreeFold<T> fold;
    Range range;
    std::vector<Range> gaps;  // alignment padding between parameters, relative to range.begin
    int parameters = 0;
    int open = 0;  // parameters still to be closed in this pass
    T* data = nullptr;
    Store store = Store::kOverwrite;
  };

  const ParameterLayout* layout_;
  std::vector<Bucket> buckets_;
  std::function<void(int)> bucket_ready_;
  PassPlace place_{};
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_GRADIENT_FOLD_H_
