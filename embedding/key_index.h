#ifndef ELASTOR_EMBEDDING_KEY_INDEX_H_
#define ELASTOR_EMBEDDING_KEY_INDEX_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "embedding/grow_buffer.h"

namespace elastor {

// Numbers keys 0, 1, 2, ... in the order they are first seen (open addressing; the keys themselves
// live in the caller's list, so that the table of one batch stays in the cache).
class KeyIndex {
 public:
  // Forgets all keys; room for `keys` different ones appended to list[0, keys).
  void Reset(int64_t keys, int64_t* list) {
    const uint64_t slots = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(keys, 8)) * 2);
    std::fill_n(slots_.Resize(static_cast<int64_t>(slots)), slots, kEmpty);
    shift_ = 64 - std::countr_zero(slots);
    mask_ = slots - 1;
    list_ = list;
    size_ = 0;
  }

  // The number of `key`, appended to the list when new.
  uint32_t FindOrAdd(int64_t key) {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
    uint64_t slot = (static_cast<uint64_t>(key) * kGolden) >> shift_;
    while (slots_[slot] != kEmpty) {
      const uint32_t number = slots_[slot];
      if (list_[number] == key) return number;
      slot = (slot + 1) & mask_;
    }
    slots_[slot] = size_;
    list_[size_] = key;
    return size_++;
  }

  uint32_t size() const { return size_; }

 private:
  static constexpr uint32_t kEmpty = 0xffffffff;
  GrowBuffer<uint32_t> slots_;
  int shift_ = 0;
  uint64_t mask_ = 0;
  int64_t* list_ = nullptr;
  uint32_t size_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_KEY_INDEX_H_
