#ifndef ELASTOR_TRAINER_PREPARE_VOCABULARY_H_
#define ELASTOR_TRAINER_PREPARE_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// The distinct values of one field, numbered by first occurrence. An open-addressing table whose
// 16-byte slots hold values of up to 8 bytes themselves (Criteo's hexadecimal texts), so that a
// lookup touches one cache line; longer values are found by XXH3-64 and compared in an arena.
// Not thread-safe.
class Vocabulary {
 public:
  Vocabulary();

  // The number of `value`: 0 for the first new value, then 1, ... REQUIRES: fewer than 2^32 values
  // of fewer than 2^32 bytes.
  uint32_t Add(std::string_view value);
  // Brings the slot of `value` nearer: called some values ahead of Add, it hides memory latency.
  void Prefetch(std::string_view value) const;
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  std::string_view value(uint32_t number) const;

  // Table rows by number, given how often each number occurs in the training split: 0 for the empty
  // value and those seen fewer than min_count times, the others 1, 2, ... by count descending, then
  // by value (bytes ascending). *rows receives the size of the table.
  std::vector<uint32_t> Rank(const std::vector<uint64_t>& counts, uint64_t min_count,
                             int64_t* rows) const;

 private:
  struct Slot {
    uint64_t key = 0;  // the value's bytes when length <= 8, else its XXH3-64
    uint32_t length = 0;
    uint32_t number = 0;  // plus one; 0: empty
  };
  void Grow();

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::string arena_;        // all values, one after another
  std::vector<uint64_t> ends_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VOCABULARY_H_
