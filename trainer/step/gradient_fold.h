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

// The sink of training: sums one thread's leaves along the leaf tree, bucket by bucket. Where a
// leaf's right sibling follows, its kernels add straight into the left one's buffer. One per
// computing thread; thread-compatible.
template <typename T>
class GradientFold final : public GradientSink<T> {
 public:
  // `leaves`: the thread's. layout outlives the sink.
  GradientFold(const ParameterLayout* layout, const Range& leaves);

  // Forgets the last step. bucket_ready(bucket) is called when a bucket is complete: while the
  // last pass of the last leaf runs.
  void BeginStep(std::function<void(int bucket)> bucket_ready);
  // A backward pass over rows of `leaf`, leaves ascending; a leaf's rows may take several passes,
  // whose gradients are added in order. last_leaf: no other present leaf follows on this thread.
  struct PassPlace {
    int64_t leaf;
    bool first_of_leaf;
    bool last_of_leaf;
    bool last_leaf;
  };
  void BeginPass(const PassPlace& place);
  // For a thread without present leaves.
  void FinishWithoutLeaves();

  typename GradientSink<T>::Target Open(int parameter) override;
  void Close(int parameter) override;

  // Once the bucket is ready: this thread's canonical nodes.
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
