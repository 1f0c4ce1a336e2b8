#ifndef ELASTOR_TRAINER_PREPARE_EXTERNAL_SORT_H_
#define ELASTOR_TRAINER_PREPARE_EXTERNAL_SORT_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/work_file.h"

namespace elastor {

// Sorts records that do not fit into memory: sorted runs go into a working file and are merged. A
// record is a Head and text. A Head is trivially copyable, says by text_bytes() how long the text
// is, and no two are equal, so the order does not depend on which records are in which run.
template <typename Head>
class ExternalSort {
 public:
  // Records in memory, of one thread.
  class Batch {
   public:
    // The memory is taken as records come.
    explicit Batch(int64_t most_bytes) : most_bytes_(most_bytes) {
      heads_.reserve(most_bytes / sizeof(heads_[0]));
      texts_.reserve(most_bytes);
    }
    void Add(const Head& head, std::string_view text) {
      heads_.emplace_back(head, texts_.size());
      texts_.append(text);
    }
    bool full() const {
      const size_t bytes = heads_.size() * sizeof(heads_[0]) + texts_.size();
      return static_cast<int64_t>(bytes) >= most_bytes_;
    }

   private:
    friend class ExternalSort;
    const int64_t most_bytes_;
    std::vector<std::pair<Head, uint64_t>> heads_;  // and where their texts begin
    std::string texts_;
  };

  // `file` takes the runs, from its beginning, and must outlive this.
  explicit ExternalSort(WorkFile* file) : file_(file) {}

  // Writes the records as a run, and empties the batch. Thread-safe.
  Status Spill(Batch* batch) {
    if (batch->heads_.empty()) return OkStatus();
    std::sort(batch->heads_.begin(), batch->heads_.end());
    int64_t bytes = 0;
    for (const auto& [head, at] : batch->heads_) bytes += RecordBytes(head);
    Run run = {file_->Reserve(bytes), bytes};
    std::string buffer;
    for (const auto& [head, at] : batch->heads_) {
      buffer.append(reinterpret_cast<const char*>(&head), sizeof(Head));
      buffer.append(batch->texts_, at, head.text_bytes());
      if (buffer.size() < kBufferBytes) continue;
      ELASTOR_RETURN_IF_ERROR(file_->WriteAt(run.at, buffer));
      run.at += static_cast<int64_t>(buffer.size());
      buffer.clear();
    }
    ELASTOR_RETURN_IF_ERROR(file_->WriteAt(run.at, buffer));
    run.at += static_cast<int64_t>(buffer.size()) - bytes;
    batch->heads_.clear();
    batch->texts_.clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    runs_.push_back(run);
    return OkStatus();
  }

  // Calls visit(head, text) -> Status for all records in order. The buffers take `memory_bytes`, or
  // 4 KiB a run if that is more. Machine error when a run cannot be read, or is damaged.
  template <typename Visit>
  Status Merge(int64_t memory_bytes, const Visit& visit) {
    const int64_t share = memory_bytes / std::max<int64_t>(std::ssize(runs_), 1);
    const size_t buffer_bytes = std::clamp<int64_t>(share, 4096, kBufferBytes);
    std::vector<Reader> readers;
    for (const Run& run : runs_) readers.emplace_back().run = run;
    std::vector<Reader*> heap;
    const auto later = [](const Reader* a, const Reader* b) { return b->head < a->head; };
    for (Reader& reader : readers) {
      ELASTOR_RETURN_IF_ERROR(reader.Next(*file_, buffer_bytes));
      heap.push_back(&reader);
    }
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      Reader& first = *heap.back();
      ELASTOR_RETURN_IF_ERROR(visit(first.head, first.text()));
      if (first.run.bytes == 0) {
        heap.pop_back();
        continue;
      }
      ELASTOR_RETURN_IF_ERROR(first.Next(*file_, buffer_bytes));
      std::push_heap(heap.begin(), heap.end(), later);
    }
    return OkStatus();
  }

 private:
  static constexpr int64_t kBufferBytes = 1 << 20;

  struct Run {
    int64_t at = 0;
    int64_t bytes = 0;
  };
  // The first record of what is left of a run.
  struct Reader {
    Run run;  // behind `head`
    std::string buffer;
    size_t at = 0;  // in buffer, behind `head`
    Head head;

    std::string_view text() const {
      return std::string_view(buffer).substr(at - head.text_bytes(), head.text_bytes());
    }
    Status Next(const WorkFile& file, size_t buffer_bytes) {
      ELASTOR_RETURN_IF_ERROR(Take(file, sizeof(Head), buffer_bytes));
      std::memcpy(&head, buffer.data() + at - sizeof(Head), sizeof(Head));
      return Take(file, head.text_bytes(), buffer_bytes);
    }
    // Goes on by `bytes` bytes, which lie in the buffer then.
    Status Take(const WorkFile& file, size_t bytes, size_t buffer_bytes) {
      if (static_cast<int64_t>(bytes) > run.bytes) {
        return MachineError("working files of histories: damaged; begin anew with --restart");
      }
      if (buffer.size() - at < bytes) {
        buffer.erase(0, at);
        at = 0;
        const int64_t rest = run.bytes - static_cast<int64_t>(buffer.size());
        const int64_t more = std::min<int64_t>(rest, std::max(bytes, buffer_bytes));
        buffer.resize(buffer.size() + more);
        const int64_t from = run.at + run.bytes - rest;
        ELASTOR_RETURN_IF_ERROR(file.ReadAt(from, more, buffer.data() + buffer.size() - more));
      }
      at += bytes;
      run.at += static_cast<int64_t>(bytes);
      run.bytes -= static_cast<int64_t>(bytes);
      return OkStatus();
    }
  };

  static int64_t RecordBytes(const Head& head) {
    return static_cast<int64_t>(sizeof(Head) + head.text_bytes());
  }

  WorkFile* const file_;
  std::mutex mutex_;  // guards the rest
  std::vector<Run> runs_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_EXTERNAL_SORT_H_
