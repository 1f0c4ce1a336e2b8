#ifndef ELASTOR_TRAINER_DATA_VOCABULARY_H_
#define ELASTOR_TRAINER_DATA_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// The first eight bytes of a value as a number that sorts like them; zeros where there are none.
uint64_t PrefixOf(std::string_view value);

// A value of a vocabulary that has been sorted.
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
  static constexpr size_t kShort = 8;  // longest value without a place in the arena

  Vocabulary();

  // The number of `value`: 0 for the first new value, then 1, ... REQUIRES: fewer than 2^32 values
  // of fewer than 2^32 bytes.
  uint32_t Add(std::string_view value);
  // The number of `value`, or -1. Threads may call it at once while nobody calls anything else.
  int64_t Find(std::string_view value) const;
  // Brings the slot of `value` nearer: called some values ahead of Add, it hides memory latency.
  void Prefetch(std::string_view value) const;
  // The same for a number that stands for the value of its eight bytes, greatest first.
  uint32_t AddInteger(uint64_t value);
  void PrefetchInteger(uint64_t value) const;

  int64_t size() const { return size_; }
  // Of memory now, and after the growth that a little more will cause.
  int64_t bytes() const;

  // Sorts the values (bytes ascending). Nothing but sorted(), long_values() and LongValue is of use
  // afterwards. Takes 16 bytes a value meanwhile.
  void Sort();
  const std::vector<SortedValue>& sorted() const { return slots_; }
  bool long_values() const { return !long_begins_.empty(); }
  // REQUIRES: the value is longer than kShort.
  std::string_view LongValue(const SortedValue& value) const {
    return {arena_.data() + long_begins_[value.number], value.length};
  }

 private:
  // `prefix` is a short value's bytes, the first one least, else XXH3-64 of the value; `number` is
  // one more than the number, 0: empty.
  using Slot = SortedValue;
  uint32_t AddKey(uint64_t key, std::string_view value, uint32_t length);
  // The slot of a value, or the empty one where it would be put.
  size_t SlotOf(uint64_t key, std::string_view value, uint32_t length) const;
  void PrefetchKey(uint64_t key, uint32_t length) const;
  void Grow();

  std::vector<Slot> slots_;  // a power of two, at most half full
  int64_t size_ = 0;
  std::string arena_;                  // of long values
  std::vector<uint64_t> long_begins_;  // by number; empty: no long value yet
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_VOCABULARY_H_
