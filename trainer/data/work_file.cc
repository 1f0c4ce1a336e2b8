#include "trainer/data/work_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/file.h"
#include "core/base/hash_text.h"

namespace elastor {
namespace {

constexpr int64_t kMostPadding = 7;  // of places that are multiples of 8

Status ShorterThanWritten(const std::string& path) {
  return MachineError(path + ": shorter than what was written to it; begin anew with --restart");
}

}  // namespace

StatusOr<std::unique_ptr<WorkFile>> WorkFile::Open(const std::string& path) {
  std::unique_ptr<WorkFile> work(new WorkFile(path));
  ELASTOR_ASSIGN_OR_RETURN(work->file_, OpenFile(path, O_RDWR | O_CREAT));
  return work;
}

WorkFile::~WorkFile() {
  watch_.reset();
  if (data_ != nullptr) munmap(const_cast<char*>(data_), mapped_);
  if (file_ >= 0) close(file_);
}

int64_t WorkFile::Reserve(int64_t bytes) { return end_.fetch_add((bytes + 7) & ~int64_t{7}); }

void WorkFile::ReserveUpTo(int64_t bytes) {
  const int64_t wanted = (bytes + 7) & ~int64_t{7};
  if (end_ < wanted) end_ = wanted;
}

Status WorkFile::WriteAt(int64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return MachineError(path_ + ": cannot write: " + std::strerror(errno));
    bytes.remove_prefix(written);
    at += written;
  }
  return OkStatus();
}

Status WorkFile::ReadAt(int64_t at, int64_t bytes, char* buffer) const {
  while (bytes > 0) {
    const ssize_t got = pread(file_, buffer, bytes, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return MachineError(path_ + ": cannot read: " + std::strerror(errno));
    if (got == 0) return ShorterThanWritten(path_);
    buffer += got;
    at += got;
    bytes -= got;
  }
  return OkStatus();
}

Status WorkFile::Sync() {
  if (fsync(file_) == 0) return OkStatus();
  return MachineError(path_ + ": cannot write: " + std::strerror(errno));
}

Status WorkFile::Map() {
  const int64_t end = end_;
  if (end == 0) return OkStatus();
  const int64_t written = lseek(file_, 0, SEEK_END);
  if (written + kMostPadding < end) return ShorterThanWritten(path_);
  // Reserved places may end in padding that was never written.
  if (written < end && ftruncate(file_, end) != 0) {
    return MachineError(path_ + ": cannot write: " + std::strerror(errno));
  }
  void* mapped = mmap(nullptr, end, PROT_READ, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return MachineError(path_ + ": cannot map: " + std::strerror(errno));
  data_ = static_cast<const char*>(mapped);
  mapped_ = end;
  watch_ = std::make_unique<MappingWatch>(
      static_cast<char*>(mapped), mapped_,
      "prepare: " + path_ + ": cannot read: it was cut off, or its disk fails");
  return OkStatus();
}

StatusOr<std::string> WorkFile::Checksum() const {
  constexpr int64_t kPieceBytes = 1 << 20;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  std::string piece;
  for (int64_t at = 0; at < mapped_; at += kPieceBytes) {
    piece.resize(std::min(kPieceBytes, mapped_ - at));
    ELASTOR_RETURN_IF_ERROR(ReadAt(at, static_cast<int64_t>(piece.size()), piece.data()));
    XXH3_64bits_update(hash.get(), piece.data(), piece.size());
  }
  return HashText(XXH3_64bits_digest(hash.get()));
}

void WorkFile::Forget(int64_t at, int64_t bytes) const {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t begin = (at + page - 1) / page * page;
  const int64_t end = (at + bytes) / page * page;
  if (begin < end) madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace elastor
