#include "trainer/step/gradient_fold.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace elastor {

template <typename T>
GradientFold<T>::GradientFold(const ParameterLayout* layout, const Range& leaves)
    : layout_(layout) {
  for (const Range& range : layout->buckets()) buckets_.emplace_back(leaves, range);
  std::vector<int64_t> covered(buckets_.size(), 0);
  for (const ParameterInfo& p : layout->parameters()) {
    Bucket& bucket = buckets_[p.bucket];
    const int64_t begin = p.offset - bucket.range.begin;
    bucket.gaps.push_back({covered[p.bucket], begin});
    covered[p.bucket] = begin + p.size;
    ++bucket.parameters;
  }
  for (size_t b = 0; b < buckets_.size(); ++b) {
    buckets_[b].gaps.push_back({covered[b], buckets_[b].range.size()});
  }
}

template <typename T>
void GradientFold<T>::BeginStep(std::function<void(int)> bucket_ready) {
  bucket_ready_ = std::move(bucket_ready);
  for (Bucket& bucket : buckets_) bucket.fold.Clear();
}

template <typename T>
void GradientFold<T>::BeginPass(const PassPlace& place) {
  place_ = place;
  for (Bucket& bucket : buckets_) {
    CHECK_EQ(bucket.open, 0);
    bucket.open = bucket.parameters;
    if (!place.first_of_node) {
      bucket.store = Store::kAdd;
      continue;
    }
    // A leaf of several passes is summed on its own before it meets its sibling.
    T* const sibling =
        place.last_of_node ? bucket.fold.AddTarget(place.leaf, place.next_leaf) : nullptr;
    bucket.store = sibling != nullptr ? Store::kAdd : Store::kOverwrite;
    bucket.data = sibling;
    if (sibling != nullptr) continue;
    bucket.data = bucket.fold.Push(place.leaf);
    for (const Range& gap : bucket.gaps) {
      std::fill(bucket.data + gap.begin, bucket.data + gap.end, T{0});
    }
  }
}

template <typename T>
void GradientFold<T>::FinishWithoutLeaves() {
  for (int b = static_cast<int>(buckets_.size()) - 1; b >= 0; --b) bucket_ready_(b);
}

template <typename T>
typename GradientSink<T>::Target GradientFold<T>::Open(int parameter) {
  const ParameterInfo& info = (*layout_)[parameter];
  const Bucket& bucket = buckets_[info.bucket];
  CHECK_GT(bucket.open, 0) << info.name;
  return {bucket.data + (info.offset - bucket.range.begin), bucket.store};
}

template <typename T>
void GradientFold<T>::Close(int parameter) {
  const int b = (*layout_)[parameter].bucket;
  Bucket& bucket = buckets_[b];
  if (--bucket.open > 0 || !place_.last_of_node || !place_.last_node) return;
  bucket.fold.Finish();
  bucket_ready_(b);
}

template class GradientFold<float>;
template class GradientFold<double>;

}  // namespace elastor
