#ifndef ELASTOR_EMBEDDING_ROW_TIER_H_
#define ELASTOR_EMBEDDING_ROW_TIER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/mapping_watch.h"
#include "core/base/status.h"
#include "embedding/zero_pages.h"

namespace elastor {

struct RowTierOptions {
  std::string path;          // a folder on a local disk; empty: rows are in memory
  int64_t memory_bytes = 0;  // most bytes of the files' pages in memory
};

// The files of one rank in which rows of its tables lie, and the pages of them that are in memory.
// A file has no name, so that nothing is left when the process ends, however it ends. Its pages are
// mapped: an access is right whether a page is in memory or not, and waits for the disk if not. So
// nothing here decides a bit.
//
// A clock with counts decides which pages stay. Pages of the last two batches do not leave. They
// are written back before they leave. Pages are counted by this class, not by the kernel.
//
// A disk that is full or fails ends the process with exit code 3 and one line. A batch whose pages
// take more than half of memory_bytes is served, and TakeExcess tells of it.
//
// Thread-safety: Write, Fetch and Drop of regions may run together and beside everything else. One
// thread at a time calls Use, UseNext and Wait.
class RowTier {
 public:
  using Page = uint64_t;  // number of its region, and its own
  class Region;

  // User error if the folder is not there, not writable, or in memory.
  static StatusOr<std::unique_ptr<RowTier>> Open(const RowTierOptions& options);
  ~RowTier();

  // Returns a new region, which reads as zeros. It lives as long as the tier.
  Region* MakeRegion(int64_t bytes, std::string_view what);

  // Sees to it that pages which a batch reads or writes are in memory. fetched: UseNext was told of
  // them. Each call without it begins a batch, as UseNext does.
  void Use(std::span<const Page> pages, bool fetched);
  // Begins to bring the pages of the batch that follows, on a thread of its own.
  void UseNext(std::vector<Page> pages);
  // Waits until UseNext has brought them.
  void Wait();

  // Returns the bytes of the pages of the largest batch that took more than half of memory_bytes,
  // since the last call; 0 if none did. A batch that UseNext began counts when Use is told of it.
  int64_t TakeExcess();

  // Reads those of the pages that are not in memory, for a visit that does not count as a use, and
  // returns them. The visitor gives them to Drop.
  std::vector<Page> Fetch(std::vector<Page> pages);
  void Drop(std::span<const Page> pages);

  int64_t free_bytes() const;  // of the disk
  int64_t resident_bytes() const;
  int64_t file_bytes() const { return file_bytes_; }

 private:
  // Pages side by side in a region.
  struct Run;
  struct Piece {
    int region;
    int64_t number;
  };

  explicit RowTier(RowTierOptions options);
  template <typename Fn>
  void ForEachRun(std::span<const Page> pages, const Fn& fn) const;
  enum class Access { kRead, kWrite };
  // Reads pages, ascending, all at once, and maps them.
  void Read(std::span<const Page> pages, Access access) const;
  void Reserve(Region* region, int64_t piece);
  // Counts a page as one in memory.
  void Add(Region* region, int64_t page);
  // The work of Use and UseNext.
  void Bring(std::span<const Page> pages);
  // Writes back and drops at least `count` pages, if there are as many that may leave. REQUIRES:
  // mutex_ is held.
  void Evict(int64_t count);
  void WriteBack(std::span<const Page> pages) const;
  bool Pinned(uint8_t state) const;
  void Work();
  [[noreturn]] void EndForDisk(std::string_view what, int error) const;

  // Constant after construction, but for regions_, which grow before the first batch.
  const RowTierOptions options_;
  const int64_t page_bytes_;
  const int64_t most_pages_;  // in memory
  std::vector<std::unique_ptr<Region>> regions_;

  std::atomic<int64_t> resident_ = 0;  // pages
  std::atomic<int64_t> file_bytes_ = 0;
  std::atomic<uint8_t> stamp_ = 0;  // of the last batch that began

  int64_t batch_pages_ = 0;  // of the last batch that began
  int64_t excess_ = 0;       // bytes

  std::mutex mutex_;  // guards the clock
  size_t hand_ = 0;   // the next piece that the clock looks at

  std::mutex pieces_mutex_;
  std::vector<Piece> pieces_;  // that have room on the disk, in the order in which they came

  std::mutex next_mutex_;
  std::condition_variable changed_;
  std::vector<Page> next_;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;  // started by the first UseNext
};

// A mapped file.
class RowTier::Region {
 public:
  Region(RowTier* tier, int number, int64_t bytes, std::string_view what);
  ~Region();

  char* data() const { return data_; }
  // To be called before bytes [offset, offset + bytes) are first written, and before they are
  // written outside a batch: takes room on the disk, and counts their pages.
  void Write(int64_t offset, int64_t bytes);
  // Appends the pages of these bytes, if they have room on the disk. A page that is last in *pages
  // is not appended again.
  void AddPages(int64_t offset, int64_t bytes, std::vector<Page>* pages) const;

 private:
  friend class RowTier;
  std::atomic_ref<uint8_t> State(int64_t page) const;
  std::atomic_ref<uint8_t> HasRoom(int64_t piece) const;

  RowTier* const tier_;
  const int number_;
  const int64_t bytes_;  // whole pages
  int file_ = -1;
  char* data_ = nullptr;
  ZeroPages states_;    // a byte a page: below, how often it was used, 0 if it is not in memory;
                        // above, the stamp of its last batch
  ZeroPages has_room_;  // a byte a piece: whether it has room on the disk
  std::unique_ptr<MappingWatch> watch_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_TIER_H_
