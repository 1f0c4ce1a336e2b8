#include "embedding/row_tier.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/exhausted.h"
#include "core/base/text.h"

namespace elastor {
namespace {

constexpr char kField[] = "embedding.tier.path";
constexpr int kPageBits = 44;                      // of a Page: a page's number in its region
constexpr int64_t kPieceBytes = int64_t{1} << 20;  // room on the disk that is taken at once
constexpr int64_t kEvictAtOnce = 512;              // pages, so that the disk has several at a time

// A page's state: 3 bits of count, 5 of stamp.
constexpr uint8_t kCountMask = 7;
constexpr int kStampShift = 3;
constexpr uint8_t kStamps = 32;

uint8_t MakeState(uint8_t count, uint8_t stamp) {
  return static_cast<uint8_t>(count | (stamp % kStamps) << kStampShift);
}

// Returns the descriptor of a new file without a name; -1 and errno if there is none.
int OpenUnnamed(const std::string& path) {
  const int file = open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return file;
  std::string name = path + "/rows-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

struct RowTier::Run {
  const Region& region;
  int64_t offset;  // bytes
  int64_t bytes;
  char* data() const { return region.data() + offset; }
};

// ---- Regions

RowTier::Region::Region(RowTier* tier, int number, int64_t bytes, std::string_view what)
    : tier_(tier),
      number_(number),
      bytes_((bytes + tier->page_bytes_ - 1) / tier->page_bytes_ * tier->page_bytes_),
      states_(bytes_ / tier->page_bytes_, what),
      has_room_(bytes_ / kPieceBytes + 1, what) {
  file_ = OpenUnnamed(tier->options_.path);
  if (file_ < 0 || ftruncate(file_, bytes_) != 0) {
    tier->EndForDisk(StrCat("cannot make a file of ", bytes_, " bytes for ", what), errno);
  }
  if (bytes_ == 0) return;
  void* const mapped =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (mapped == MAP_FAILED) EndForMemory(bytes_, what);
  data_ = static_cast<char*>(mapped);
  madvise(data_, bytes_, MADV_RANDOM);  // what is read ahead is said
  watch_ = std::make_unique<MappingWatch>(
      data_, bytes_,
      StrCat(program_invocation_short_name, ": ", kField, ": ", tier->options_.path,
             ": cannot read or write a page of ", what));
}

RowTier::Region::~Region() {
  watch_.reset();
  if (data_ != nullptr) munmap(data_, bytes_);
  if (file_ >= 0) close(file_);
}

std::atomic_ref<uint8_t> RowTier::Region::State(int64_t page) const {
  return std::atomic_ref<uint8_t>(static_cast<uint8_t*>(states_.data())[page]);
}

std::atomic_ref<uint8_t> RowTier::Region::HasRoom(int64_t piece) const {
  return std::atomic_ref<uint8_t>(static_cast<uint8_t*>(has_room_.data())[piece]);
}

void RowTier::Region::Write(int64_t offset, int64_t bytes) {
  const int64_t last = offset + bytes - 1;
  for (int64_t piece = offset / kPieceBytes; piece <= last / kPieceBytes; ++piece) {
    if (HasRoom(piece).load(std::memory_order_relaxed) == 0) tier_->Reserve(this, piece);
  }
  const int64_t page_bytes = tier_->page_bytes_;
  for (int64_t page = offset / page_bytes; page <= last / page_bytes; ++page) {
    if (State(page).load(std::memory_order_relaxed) == 0) tier_->Add(this, page);
  }
}

void RowTier::Region::AddPages(int64_t offset, int64_t bytes, std::vector<Page>* pages) const {
  const int64_t page_bytes = tier_->page_bytes_;
  const int64_t last = offset + bytes - 1;
  for (int64_t page = offset / page_bytes; page <= last / page_bytes; ++page) {
    if (HasRoom(page * page_bytes / kPieceBytes).load(std::memory_order_relaxed) == 0) continue;
    const Page next = static_cast<Page>(number_) << kPageBits | static_cast<Page>(page);
    if (pages->empty() || pages->back() != next) pages->push_back(next);
  }
}

// ---- The tier

StatusOr<std::unique_ptr<RowTier>> RowTier::Open(const RowTierOptions& options) {
  const auto refuse = [&](const std::string& found) {
    return UserError(StrCat(kField, ": ", options.path, ": ", found,
                            "; expected a folder on a local disk that this process may write to"));
  };
  struct stat entry;
  if (stat(options.path.c_str(), &entry) != 0) return refuse(std::strerror(errno));
  if (!S_ISDIR(entry.st_mode)) return refuse("not a folder");
  struct statfs system;
  if (statfs(options.path.c_str(), &system) != 0) return refuse(std::strerror(errno));
  constexpr uint32_t kTmpfs = 0x01021994, kRamfs = 0x858458f6;
  const auto type = static_cast<uint32_t>(system.f_type);
  if (type == kTmpfs || type == kRamfs) return refuse("its files lie in memory");
  const int file = OpenUnnamed(options.path);
  if (file < 0) return refuse(std::strerror(errno));
  close(file);
  return std::unique_ptr<RowTier>(new RowTier(options));
}

RowTier::RowTier(RowTierOptions options)
    : options_(std::move(options)),
      page_bytes_(sysconf(_SC_PAGESIZE)),
      most_pages_(options_.memory_bytes / page_bytes_) {}

RowTier::~RowTier() {
  Wait();
  {
    const std::lock_guard lock(next_mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

RowTier::Region* RowTier::MakeRegion(int64_t bytes, std::string_view what) {
  const int number = static_cast<int>(regions_.size());
  return regions_.emplace_back(std::make_unique<Region>(this, number, bytes, what)).get();
}

int64_t RowTier::free_bytes() const {
  struct statvfs system;
  if (statvfs(options_.path.c_str(), &system) != 0) return 0;
  return static_cast<int64_t>(system.f_bavail) * static_cast<int64_t>(system.f_frsize);
}

int64_t RowTier::resident_bytes() const { return resident_ * page_bytes_; }

void RowTier::EndForDisk(std::string_view what, int error) const {
  EndWithLine(static_cast<int>(StatusCode::kMachine),
              StrCat(kField, ": ", options_.path, ": ", what, ": ", std::strerror(error)));
}

void RowTier::Reserve(Region* region, int64_t piece) {
  const std::lock_guard lock(pieces_mutex_);
  if (region->HasRoom(piece).load() != 0) return;
  const int64_t begin = piece * kPieceBytes;
  const int64_t bytes = std::min(kPieceBytes, region->bytes_ - begin);
  // Without room a page that is written would be SIGBUS. Where the file system cannot promise room,
  // it is.
  while (fallocate(region->file_, 0, begin, bytes) != 0) {
    if (errno == EOPNOTSUPP) break;
    if (errno != EINTR) EndForDisk("no room for more rows of embedding tables", errno);
  }
  file_bytes_ += bytes;
  pieces_.push_back({region->number_, piece});
  region->HasRoom(piece).store(1);
}

void RowTier::Add(Region* region, int64_t page) {
  uint8_t absent = 0;
  // A stamp that is neither of the last two batches'.
  const uint8_t state = MakeState(1, static_cast<uint8_t>(stamp_ + kStamps / 2));
  if (!region->State(page).compare_exchange_strong(absent, state)) return;
  if (++resident_ <= most_pages_) return;
  const std::lock_guard lock(mutex_);
  if (const int64_t beyond = resident_ - most_pages_; beyond > 0) Evict(beyond);
}

bool RowTier::Pinned(uint8_t state) const {
  const int age = (stamp_ - (state >> kStampShift)) % kStamps;
  return (age + kStamps) % kStamps <= 1;
}

// ---- Batches

void RowTier::Use(std::span<const Page> pages, bool fetched) {
  Wait();
  if (!fetched) Bring(pages);
  if (2 * batch_pages_ > most_pages_) excess_ = std::max(excess_, batch_pages_ * page_bytes_);
}

int64_t RowTier::TakeExcess() { return std::exchange(excess_, 0); }

void RowTier::UseNext(std::vector<Page> pages) {
  Wait();
  const std::lock_guard lock(next_mutex_);
  next_ = std::move(pages);
  busy_ = true;
  if (!thread_.joinable()) {
    thread_ = StartThread(1, 1, "reading rows of embedding tables ahead", [this] { Work(); });
  }
  changed_.notify_all();
}

void RowTier::Wait() {
  std::unique_lock lock(next_mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

void RowTier::Work() {
  std::unique_lock lock(next_mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || ends_; });
    if (!busy_) return;
    lock.unlock();
    Bring(next_);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void RowTier::Bring(std::span<const Page> pages) {
  std::vector<Page> absent;
  {
    const std::lock_guard lock(mutex_);
    const uint8_t stamp = stamp_ = static_cast<uint8_t>((stamp_ + 1) % kStamps);
    int64_t different = 0;
    for (const Page page : pages) {
      const auto state = regions_[page >> kPageBits]->State(page & ((Page{1} << kPageBits) - 1));
      uint8_t before = state.load();
      uint8_t after;
      do {
        const uint8_t count = before & kCountMask;
        // Counted already; an old stamp of the same number does no harm.
        if (count > 0 && before >> kStampShift == stamp) break;
        after = MakeState(std::min<uint8_t>(count + 1, kCountMask), stamp);
      } while (!state.compare_exchange_weak(before, after));
      if ((before & kCountMask) > 0 && before >> kStampShift == stamp) continue;
      ++different;
      if ((before & kCountMask) == 0) absent.push_back(page);
    }
    batch_pages_ = different;
    const auto more = static_cast<int64_t>(absent.size());
    if (const int64_t beyond = resident_ + more - most_pages_; beyond > 0) Evict(beyond);
    resident_ += more;
  }
  std::sort(absent.begin(), absent.end());
  Read(absent, Access::kWrite);
}

std::vector<RowTier::Page> RowTier::Fetch(std::vector<Page> pages) {
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  std::erase_if(pages, [this](Page page) {
    return regions_[page >> kPageBits]->State(page & ((Page{1} << kPageBits) - 1)) != 0;
  });
  Read(pages, Access::kRead);
  return pages;
}

void RowTier::Drop(std::span<const Page> pages) {
  ForEachRun(pages, [](const Run& run) {
    madvise(run.data(), run.bytes, MADV_DONTNEED);
    posix_fadvise(run.region.file_, run.offset, run.bytes, POSIX_FADV_DONTNEED);
  });
}

template <typename Fn>
void RowTier::ForEachRun(std::span<const Page> pages, const Fn& fn) const {
  for (size_t begin = 0; begin < pages.size();) {
    size_t end = begin + 1;
    while (end < pages.size() && pages[end] == pages[end - 1] + 1) ++end;
    const auto page = static_cast<int64_t>(pages[begin] & ((Page{1} << kPageBits) - 1));
    fn(Run{*regions_[pages[begin] >> kPageBits], page * page_bytes_,
           static_cast<int64_t>(end - begin) * page_bytes_});
    begin = end;
  }
}

void RowTier::Read(std::span<const Page> pages, Access access) const {
  ForEachRun(pages, [](const Run& run) { madvise(run.data(), run.bytes, MADV_WILLNEED); });
  // Maps them, so that no computing thread waits for a fault. A kernel before 5.14 cannot.
  constexpr int kPopulateRead = 22, kPopulateWrite = 23;
  ForEachRun(pages, [&](const Run& run) {
    const int advice = access == Access::kRead ? kPopulateRead : kPopulateWrite;
    if (madvise(run.data(), run.bytes, advice) == 0 || errno != EFAULT) return;
    EndForDisk("cannot read rows of embedding tables", EIO);
  });
}

// ---- The clock

void RowTier::Evict(int64_t count) {
  count = std::max(count, std::min(kEvictAtOnce, most_pages_ / 16));
  const int64_t pages_of_piece = kPieceBytes / page_bytes_;
  std::vector<Page> victims;
  size_t pieces;
  {
    const std::lock_guard lock(pieces_mutex_);
    pieces = pieces_.size();
  }
  // Each round takes one off a page's count.
  for (size_t looked = 0; looked < pieces * kCountMask; ++looked) {
    if (static_cast<int64_t>(victims.size()) >= count) break;
    hand_ = (hand_ + 1) % pieces;
    Piece piece;
    {
      const std::lock_guard lock(pieces_mutex_);
      piece = pieces_[hand_];
    }
    const Region& region = *regions_[piece.region];
    const int64_t first = piece.number * pages_of_piece;
    const int64_t end = std::min(first + pages_of_piece, region.bytes_ / page_bytes_);
    for (int64_t page = first; page < end; ++page) {
      const auto state = region.State(page);
      uint8_t before = state.load(std::memory_order_relaxed);
      const uint8_t used = before & kCountMask;
      if (used == 0 || Pinned(before)) continue;
      const uint8_t after = used == 1 ? uint8_t{0} : static_cast<uint8_t>(before - 1);
      if (!state.compare_exchange_strong(before, after) || after != 0) continue;
      victims.push_back(static_cast<Page>(piece.region) << kPageBits | static_cast<Page>(page));
    }
  }
  WriteBack(victims);
  resident_ -= static_cast<int64_t>(victims.size());
}

void RowTier::WriteBack(std::span<const Page> pages) const {
  ForEachRun(pages, [](const Run& run) {
    // Tells the kernel which pages were written, and that nobody needs them.
    madvise(run.data(), run.bytes, MADV_DONTNEED);
    sync_file_range(run.region.file_, run.offset, run.bytes, SYNC_FILE_RANGE_WRITE);
  });
  ForEachRun(pages, [this](const Run& run) {
    constexpr int kAll =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (sync_file_range(run.region.file_, run.offset, run.bytes, kAll) != 0) {
      EndForDisk("cannot write rows of embedding tables", errno);
    }
    posix_fadvise(run.region.file_, run.offset, run.bytes, POSIX_FADV_DONTNEED);
  });
}

}  // namespace elastor
