#include "core/ops/cuda/leaf_gradients.h"

#include <utility>

#include "core/base/log.h"

namespace elastor::cuda {

LeafGradients::LeafGradients(const ParameterLayout* layout, Stream* stream)
    : layout_(layout), stream_(stream), memory_(stream), maps_(layout->parameters().size()) {
  for (size_t b = 0; b < layout->buckets().size(); ++b) buckets_.emplace_back(stream);
  for (const ParameterInfo& p : layout->parameters()) ++buckets_[p.bucket].parameters;
}

void LeafGradients::Reserve(int64_t leaves) {
  if (leaves == leaves_) return;
  leaves_ = leaves;
  memory_.Resize(leaves * layout_->flat_size());
  for (Bucket& bucket : buckets_) bucket.runs_ready = false;
}

void LeafGradients::Begin(std::function<void(int)> bucket_ready) {
  bucket_ready_ = std::move(bucket_ready);
  for (Bucket& bucket : buckets_) bucket.open = bucket.parameters;
}

LeafGradients::Target LeafGradients::Open(int parameter, int64_t maps) {
  const ParameterInfo& p = (*layout_)[parameter];
  CHECK_EQ(p.size % maps, 0) << p.name;
  CHECK(maps_[parameter] == 0 || maps_[parameter] == maps) << p.name;
  CHECK_GT(leaves_, 0);
  maps_[parameter] = maps;
  const int64_t inner = p.size / maps;
  return {memory_.data() + leaves_ * p.offset, leaves_ * inner, inner};
}

void LeafGradients::Close(int parameter) {
  const int b = (*layout_)[parameter].bucket;
  CHECK_GT(buckets_[b].open, 0) << (*layout_)[parameter].name;
  if (--buckets_[b].open == 0 && bucket_ready_) bucket_ready_(b);
}

const FoldRun* LeafGradients::runs(int bucket) {
  Bucket& target = buckets_[bucket];
  if (!target.runs_ready) {
    std::vector<FoldRun> runs;
    for (size_t i = 0; i < maps_.size(); ++i) {
      const ParameterInfo& p = (*layout_)[static_cast<int>(i)];
      if (p.bucket != bucket) continue;
      CHECK_GT(maps_[i], 0) << p.name << " before its first pass";
      runs.push_back({p.offset, p.size, p.size / maps_[i], memory_.data() + leaves_ * p.offset});
    }
    Copy(*stream_, target.runs.Resize(runs.size()), runs.data(), runs.size());
    target.runs_ready = true;
  }
  return target.runs.data();
}

int64_t LeafGradients::run_count(int bucket) const { return buckets_[bucket].parameters; }

}  // namespace elastor::cuda
