#include "trainer/score/row_layer.h"

#include <algorithm>
#include <bit>

namespace elastor {
namespace {

constexpr uint32_t kEmptySlot = 0xffffffff;

}  // namespace

RowLayer::RowLayer(int64_t rows, int64_t gone, int64_t width)
    : width_(width),
      most_rows_(static_cast<uint32_t>(rows)),
      slots_(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows + gone, 4)) * 2),
             kEmptySlot),
      values_(rows * width) {
  shift_ = 64 - std::countr_zero(slots_.size());
  keys_.reserve(rows);
  gone_.reserve(gone);
}

size_t RowLayer::PlaceOf(int64_t key) const {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  size_t place = (static_cast<uint64_t>(key) * kGolden) >> shift_;
  while (slots_[place] != kEmptySlot && KeyAt(slots_[place]) != key) {
    place = (place + 1) & (slots_.size() - 1);
  }
  return place;
}

float* RowLayer::Add(int64_t key) {
  const size_t place = PlaceOf(key);
  if (slots_[place] != kEmptySlot) return nullptr;
  slots_[place] = static_cast<uint32_t>(keys_.size());
  keys_.push_back(key);
  return values_.data() + slots_[place] * width_;
}

bool RowLayer::AddGone(int64_t key) {
  const size_t place = PlaceOf(key);
  if (slots_[place] != kEmptySlot) return false;
  slots_[place] = most_rows_ + static_cast<uint32_t>(gone_.size());
  gone_.push_back(key);
  return true;
}

void RowLayer::Replace(std::span<const int64_t> keys, float** rows) const {
  if (keys_.empty() && gone_.empty()) return;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint32_t number = slots_[PlaceOf(keys[i])];
    if (number == kEmptySlot) continue;
    rows[i] = number < most_rows_ ? values_.data() + number * width_ : nullptr;
  }
}

}  // namespace elastor
