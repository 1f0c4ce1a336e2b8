#ifndef ELASTOR_TRAINER_PREPARE_ROWS_SEGMENTS_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_SEGMENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/value_runs.h"
#include "trainer/prepare/rows/spill.h"

namespace elastor {

// What one worker has made of some chunks of text: their rows, with values as numbers into the
// segment's own vocabularies.
struct TextSegment {
  std::vector<SpilledChunk> chunks;
  std::vector<ValueRun> runs;         // by column of PreparePlan::ids
  std::vector<int64_t> cut_values;    // the same: how many bags had no room for
  std::vector<int64_t> missing_keys;  // by lookup: rows whose key the side table lacks
};

// All that is known of the text so far.
struct SegmentList {
  std::vector<TextSegment> segments;
  std::vector<std::pair<uint32_t, uint32_t>> ended;  // inputs read to their end: input, chunks
};

// The journal of finished segments: what is in it survives a kill at any moment, and is not done
// again. Not thread-safe.
class SegmentLog {
 public:
  // Reads what the journal holds (a record cut off at its end is left out) and goes on behind it.
  static StatusOr<std::unique_ptr<SegmentLog>> Open(const std::string& path, SegmentList* list);
  ~SegmentLog();

  // What the segment refers to has been written.
  Status Append(const TextSegment& segment);
  Status AppendEnd(uint32_t input, uint32_t chunks);

 private:
  explicit SegmentLog(std::string path) : path_(std::move(path)) {}
  Status AppendRecord(const std::string& payload);

  const std::string path_;
  int file_ = -1;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_SEGMENTS_H_
