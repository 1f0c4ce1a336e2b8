#ifndef ELASTOR_TRAINER_DATA_VALUE_RUNS_H_
#define ELASTOR_TRAINER_DATA_VALUE_RUNS_H_

#include <cstdint>
#include <string_view>

#include "core/base/status.h"
#include "trainer/data/vocabulary.h"
#include "trainer/data/work_file.h"

namespace elastor {

// The distinct values of one field in one segment, ascending, in a working file. Aligned arrays:
// prefix u64[size] (PrefixOf), number u32[size], then, when all values are short, length u8[size],
// else end u64[size] in the bytes that follow: the values one after another.
struct ValueRun {
  int64_t at = 0;
  int64_t bytes = 0;
  int64_t size = 0;
  uint64_t checksum = 0;  // XXH3-64
  bool long_values = false;
};

// REQUIRES: `vocabulary` has been sorted.
StatusOr<ValueRun> WriteValueRun(const Vocabulary& vocabulary, WorkFile* file);
// Checks a run's checksum. Machine error when the mapped file's bytes differ from those written.
Status CheckValueRun(const ValueRun& run, const WorkFile& file);

// Holds the bytes of a value with at most eight bytes.
class ShortText {
 public:
  ShortText(uint64_t prefix, size_t length) : bytes_(__builtin_bswap64(prefix)), length_(length) {}
  std::string_view view() const { return {reinterpret_cast<const char*>(&bytes_), length_}; }

 private:
  uint64_t bytes_;
  size_t length_;
};

// Gives random access to the values of a run in a mapped file.
class ValueRunView {
 public:
  ValueRunView(const ValueRun& run, const WorkFile& file);

  int64_t size() const { return run_->size; }
  uint64_t prefix(int64_t i) const { return prefixes_[i]; }
  uint32_t number(int64_t i) const { return numbers_[i]; }
  const uint32_t* numbers() const { return numbers_; }
  size_t length(int64_t i) const {
    if (ends_ == nullptr) return lengths_[i];
    return ends_[i] - (i == 0 ? 0 : ends_[i - 1]);
  }
  // Returns value i. It is valid as long as `text`, which holds a short value, and the mapping.
  std::string_view Value(int64_t i, ShortText* text) const {
    if (ends_ != nullptr) return {values_ + (i == 0 ? 0 : ends_[i - 1]), length(i)};
    *text = ShortText(prefixes_[i], lengths_[i]);
    return text->view();
  }
  // Returns the index of the first value that is not less than `value`.
  int64_t LowerBound(std::string_view value) const;
  // Releases the memory behind values [begin, end).
  void Forget(int64_t begin, int64_t end) const;

 private:
  const ValueRun* run_;
  const WorkFile* file_;
  const uint64_t* prefixes_;
  const uint32_t* numbers_;
  const uint8_t* lengths_ = nullptr;
  const uint64_t* ends_ = nullptr;
  const char* values_ = nullptr;
};

// < 0, 0 or > 0: how value i of `a` compares with value j of `b`.
inline int CompareValues(const ValueRunView& a, int64_t i, const ValueRunView& b, int64_t j) {
  if (a.prefix(i) != b.prefix(j)) return a.prefix(i) < b.prefix(j) ? -1 : 1;
  const size_t a_length = a.length(i), b_length = b.length(j);
  if (a_length <= Vocabulary::kShort || b_length <= Vocabulary::kShort) {
    // The shorter one is the beginning of the longer one.
    return a_length == b_length ? 0 : a_length < b_length ? -1 : 1;
  }
  ShortText unused_a(0, 0), unused_b(0, 0);
  return a.Value(i, &unused_a).compare(b.Value(j, &unused_b));
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_VALUE_RUNS_H_
