#include "trainer/prepare/work_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace elastor {

StatusOr<std::unique_ptr<WorkFile>> WorkFile::Open(const std::string& path) {
  std::unique_ptr<WorkFile> work(new WorkFile(path));
  work->file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (work->file_ < 0) return MachineError(path + ": cannot make: " + std::strerror(errno));
  return work;
}

WorkFile::~WorkFile() {
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
    if (got == 0) return MachineError(path_ + ": shorter than what was written to it");
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
  // Reserved places may end in padding that was never written.
  if (lseek(file_, 0, SEEK_END) < end && ftruncate(file_, end) != 0) {
    return MachineError(path_ + ": cannot write: " + std::strerror(errno));
  }
  void* mapped = mmap(nullptr, end, PROT_READ, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return MachineError(path_ + ": cannot map: " + std::strerror(errno));
  data_ = static_cast<const char*>(mapped);
  mapped_ = end;
  return OkStatus();
}

void WorkFile::Forget(int64_t at, int64_t bytes) const {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t begin = (at + page - 1) / page * page;
  const int64_t end = (at + bytes) / page * page;
  if (begin < end) madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace elastor
