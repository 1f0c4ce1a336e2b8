#ifndef ELASTOR_TRAINER_PREPARE_VALUES_KEPT_VALUES_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_KEPT_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/values/value_merge.h"

namespace elastor {

// Values with their counts in a working file, by count descending then value: of each its count
// u64, its bytes u32, and these.
struct KeptValues {
  int64_t at = 0;
  int64_t bytes = 0;
};

// `kept`: count and place of each, by value.
StatusOr<KeptValues> WriteKeptValues(const std::vector<ValueRunView>& runs,
                                     std::vector<std::pair<uint64_t, RunPlace>> kept,
                                     WorkFile* file);

// Reads them one after another.
class KeptValuesReader {
 public:
  KeptValuesReader(const WorkFile& file, const KeptValues& kept)
      : file_(&file), at_(kept.at), end_(kept.at + kept.bytes) {}

  // *found is false at the end. count() and value() are valid until the next call.
  Status Next(bool* found);
  uint64_t count() const { return count_; }
  std::string_view value() const { return std::string_view(buffer_).substr(value_at_, length_); }

 private:
  // Brings `bytes` more bytes into the buffer, unless the end is near.
  Status Fill(size_t bytes);

  const WorkFile* file_;
  int64_t at_, end_;
  std::string buffer_;
  size_t used_ = 0;
  uint64_t count_ = 0;
  size_t value_at_ = 0;
  uint32_t length_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_KEPT_VALUES_H_
