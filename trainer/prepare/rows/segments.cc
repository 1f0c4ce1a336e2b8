#include "trainer/prepare/rows/segments.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/base/file.h"

namespace elastor {
namespace {

// A record: payload bytes u64, XXH3-64 of the payload u64, payload. The payload of a segment:
// chunks u64, runs u64, these, a cut_values i64 for each run and a missing_keys i64 for each
// lookup; that of an end: input u64, chunks u64, nothing more.
struct RecordHead {
  uint64_t bytes;
  uint64_t checksum;
};

template <typename T>
void Put(const T* values, size_t count, std::string* bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes->append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

template <typename T>
void Take(size_t count, std::string_view* bytes, T* values) {
  if (count == 0) return;
  std::memcpy(values, bytes->data(), count * sizeof(T));
  bytes->remove_prefix(count * sizeof(T));
}

// False: it is none.
bool TakeRecord(std::string_view payload, SegmentList* list) {
  uint64_t counts[2];
  if (payload.size() < sizeof(counts)) return false;
  Take(2, &payload, counts);
  if (payload.empty()) {
    list->ended.push_back({static_cast<uint32_t>(counts[0]), static_cast<uint32_t>(counts[1])});
    return true;
  }
  if (counts[0] > payload.size() || counts[1] > payload.size()) return false;
  const size_t of_runs =
      counts[0] * sizeof(SpilledChunk) + counts[1] * (sizeof(ValueRun) + sizeof(int64_t));
  if (of_runs > payload.size() || (payload.size() - of_runs) % sizeof(int64_t) != 0) return false;
  TextSegment segment;
  segment.chunks.resize(counts[0]);
  segment.runs.resize(counts[1]);
  segment.cut_values.resize(counts[1]);
  segment.missing_keys.resize((payload.size() - of_runs) / sizeof(int64_t));
  Take(counts[0], &payload, segment.chunks.data());
  Take(counts[1], &payload, segment.runs.data());
  Take(counts[1], &payload, segment.cut_values.data());
  Take(segment.missing_keys.size(), &payload, segment.missing_keys.data());
  list->segments.push_back(std::move(segment));
  return true;
}

// Takes whole records; returns how many bytes they have.
size_t TakeRecords(std::string_view bytes, SegmentList* list) {
  const size_t all = bytes.size();
  while (bytes.size() >= sizeof(RecordHead)) {
    RecordHead head;
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (bytes.size() - sizeof(head) < head.bytes) break;
    const std::string_view payload = bytes.substr(sizeof(head), head.bytes);
    if (XXH3_64bits(payload.data(), payload.size()) != head.checksum) break;
    if (!TakeRecord(payload, list)) break;
    bytes.remove_prefix(sizeof(head) + head.bytes);
  }
  return all - bytes.size();
}

}  // namespace

StatusOr<std::unique_ptr<SegmentLog>> SegmentLog::Open(const std::string& path, SegmentList* list) {
  std::unique_ptr<SegmentLog> log(new SegmentLog(path));
  ELASTOR_ASSIGN_OR_RETURN(log->file_, OpenFile(path, O_RDWR | O_CREAT | O_APPEND));
  ELASTOR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (ftruncate(log->file_, static_cast<off_t>(TakeRecords(bytes, list))) != 0) {
    return MachineError(path + ": cannot write: " + std::strerror(errno));
  }
  return log;
}

SegmentLog::~SegmentLog() {
  if (file_ >= 0) close(file_);
}

Status SegmentLog::AppendRecord(const std::string& payload) {
  const RecordHead head = {payload.size(), XXH3_64bits(payload.data(), payload.size())};
  std::string record;
  Put(&head, 1, &record);
  record += payload;
  for (std::string_view left = record; !left.empty();) {
    const ssize_t written = write(file_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return MachineError(path_ + ": cannot write: " + std::strerror(errno));
    left.remove_prefix(written);
  }
  return OkStatus();
}

Status SegmentLog::Append(const TextSegment& segment) {
  const uint64_t counts[2] = {segment.chunks.size(), segment.runs.size()};
  std::string payload;
  Put(counts, 2, &payload);
  Put(segment.chunks.data(), segment.chunks.size(), &payload);
  Put(segment.runs.data(), segment.runs.size(), &payload);
  Put(segment.cut_values.data(), segment.cut_values.size(), &payload);
  Put(segment.missing_keys.data(), segment.missing_keys.size(), &payload);
  return AppendRecord(payload);
}

Status SegmentLog::AppendEnd(uint32_t input, uint32_t chunks) {
  const uint64_t counts[2] = {input, chunks};
  std::string payload;
  Put(counts, 2, &payload);
  return AppendRecord(payload);
}

}  // namespace elastor
