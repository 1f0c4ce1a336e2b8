#include "core/models/cuda/device_workspace.h"

#include <algorithm>

namespace elastor::cuda {
namespace {

constexpr int64_t kAlignment = 256;  // bytes: what cudaMalloc gives

}  // namespace

int DeviceWorkspace::Keep(const SlotBytes& bytes) {
  slots_.push_back({bytes, kKept});
  return static_cast<int>(slots_.size()) - 1;
}

int DeviceWorkspace::Temporary(const SlotBytes& bytes) {
  slots_.push_back({bytes, top_});
  return top_ = static_cast<int>(slots_.size()) - 1;
}

void DeviceWorkspace::Scratch(const SlotBytes& bytes) {
  if (scratch_ < 0) scratch_ = Keep({});
  SlotBytes& all = slots_[scratch_].bytes;
  all.row = std::max(all.row, bytes.row);
  all.leaf = std::max(all.leaf, bytes.leaf);
  all.once = std::max(all.once, bytes.once);
}

int64_t DeviceWorkspace::End(const Place& place) const {
  const SlotBytes& bytes = place.bytes;
  const int64_t size = bytes.row * rows_ + bytes.leaf * leaves_ + bytes.once;
  return place.offset + (size + kAlignment - 1) / kAlignment * kAlignment;
}

void DeviceWorkspace::Reserve(int64_t rows, int64_t leaves) {
  if (rows <= rows_ && leaves <= leaves_) return;
  rows_ = std::max(rows, rows_);
  leaves_ = std::max(leaves, leaves_);
  int64_t kept = 0;
  for (Place& place : slots_) {
    if (place.below != kKept) continue;
    place.offset = kept;
    kept = End(place);
  }
  int64_t total = kept;
  for (Place& place : slots_) {
    if (place.below == kKept) continue;
    place.offset = place.below == kBottom ? kept : End(slots_[place.below]);
    total = std::max(total, End(place));
  }
  stream_->Synchronize();
  memory_.Resize(total);
}

}  // namespace elastor::cuda
