#ifndef ELASTOR_TRAINER_DATA_VOCABULARY_H_
#define ELASTOR_TRAINER_DATA_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// The first eight bytes of a value as a number that sorts like them; zeros where there are none.
uint64_t PrefixOf(std::string_view value);

// A value of a sorted vocabulary.
struct SortedValue {
  uint64_t prefix;
  uint32_t length;
  uint32_t number;
};

// The distinct values of one field in one segment of the input, numbered by first occurrence. An
// open-addressing table whose 16-byte slots hold values of up to 8 bytes themselves (Criteo's
// hexadecimal texts), so that a lookup touches one cache line; longer values are found by XXH3-64
// and compared in an arena. Not thread-safe.
class Vocabulary {
 public:
  static constexpr size_t kShort = 8;  // bytes of the longest value that needs no arena

  Vocabulary();

  // Adds `value` unless it is there and returns its number: 0 for the first new value, then 1, ...
  // REQUIRES: fewer than 2^32 values of fewer than 2^32 bytes.
  uint32_t Add(std::string_view value);
  // Returns the number of `value`, or -1. Several threads may call it at once while no other
  // function runs.
  int64_t Find(std::string_view value) const;
  // Prefetches the slot of `value`. Called some values ahead of Add, it hides memory latency.
  void Prefetch(std::string_view value) const;
  // Like Add and Prefetch, for the value that consists of the number's eight bytes, the most
  // significant first.
  uint32_t AddInteger(uint64_t value);
  void PrefetchInteger(uint64_t value) const;

  int64_t size() const { return size_; }
  // Bytes of memory, including the growth that a few more values would cause.
  int64_t bytes() const;

  // Sorts the values by their bytes, ascending. Afterwards only sorted(), long_values() and
  // LongValue may be called. Needs 16 more bytes per value while it runs.
  void Sort();
  const std::vector<SortedValue>& sorted() const { return slots_; }
  bool long_values() const { return !long_begins_.empty(); }
  // REQUIRES: the value is longer than kShort.
  std::string_view LongValue(const SortedValue& value) const {
    return {arena_.data() + long_begins_[value.number], value.length};
  }

 private:
  // `prefix` holds a short value's bytes, the first one least significant, or a longer value's
  // XXH3-64. `number` is the value's number plus one; 0: an empty slot.
  using Slot = SortedValue;
  uint32_t AddKey(uint64_t key, std::string_view value, uint32_t length);
  // Returns the slot of a value, or the empty slot where it belongs.
  size_t SlotOf(uint64_t key, std::string_view value, uint32_t length) const;
  void PrefetchKey(uint64_t key, uint32_t length) const;
  void Grow();

  std::vector<Slot> slots_;  // a power of two, at most half full
  int64_t size_ = 0;
  std::string arena_;                  // bytes of the long values
  std::vector<uint64_t> long_begins_;  // by number; empty: no long value yet
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_VOCABULARY_H_
