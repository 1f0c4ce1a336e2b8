#ifndef ELASTOR_EMBEDDING_KEY_INDEX_H_
#define ELASTOR_EMBEDDING_KEY_INDEX_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "embedding/grow_buffer.h"

namespace elastor {

// Numbers keys 0, 1, 2, ... in the order they are first seen (open addressing; the keys themselves
// live in the caller's list, so that the table of one batch stays in the cache).
class KeyIndex {
 public:
  // Forgets all keys. list[0, keys) will hold the different keys. REQUIRES: at most `keys` keys are
  // numbered until the next Reset.
  void Reset(int64_t keys, int64_t* list) {
    const uint64_t slots = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(keys, 8)) * 2);
    std::fill_n(slots_.Resize(static_cast<int64_t>(slots)), slots, kEmpty);
    shift_ = 64 - std::countr_zero(slots);
    list_ = list;
    size_ = 0;
  }

  // Sets numbers[i] to the number of keys[i], which is appended to the list if it is new. The code
  // does not branch on that, because the branch could not be predicted: a copy of the key ends the
  // list, and an empty slot stands for that copy.
  void Number(std::span<const int64_t> keys, uint32_t* __restrict numbers) {
    uint32_t* __restrict const slots = slots_.data();
    int64_t* __restrict const list = list_;
    const int shift = shift_;
    const uint64_t mask = slots_.size() - 1;
    uint32_t size = size_;
    const auto number_at = [&](uint64_t slot) {
      const uint32_t number = slots[slot];
      const uint32_t empty = number == kEmpty ? ~uint32_t{0} : 0;
      return (number & ~empty) | (size & empty);
    };
    for (size_t i = 0; i < keys.size(); ++i) {
      __builtin_prefetch(slots + SlotOf(keys[std::min(i + kLookAhead, keys.size() - 1)], shift), 1);
      const int64_t key = keys[i];
      list[size] = key;
      uint64_t slot = SlotOf(key, shift);
      uint32_t number = number_at(slot);
      while (list[number] != key) {
        slot = (slot + 1) & mask;
        number = number_at(slot);
      }
      slots[slot] = number;
      numbers[i] = number;
      size += number == size ? 1 : 0;
    }
    size_ = size;
  }

  uint32_t Number(int64_t key) {
    uint32_t number;
    Number({&key, 1}, &number);
    return number;
  }

  uint32_t size() const { return size_; }

 private:
  static constexpr uint32_t kEmpty = 0xffffffff;
  static constexpr size_t kLookAhead = 16;

  static uint64_t SlotOf(int64_t key, int shift) {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
    return (static_cast<uint64_t>(key) * kGolden) >> shift;
  }

  GrowBuffer<uint32_t> slots_;
  int shift_ = 0;
  int64_t* list_ = nullptr;
  uint32_t size_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_KEY_INDEX_H_
