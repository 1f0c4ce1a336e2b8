#include "core/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/file.h"

namespace elastor {

namespace {

bool Equal(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Clocks of files tick every few milliseconds, those of some file systems every second or two.
bool IsFresh(const timespec& changed) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const double age = static_cast<double>(now.tv_sec - changed.tv_sec) +
                     1e-9 * static_cast<double>(now.tv_nsec - changed.tv_nsec);
  const double tick = changed.tv_nsec == 0 ? 2.0 : 0.05;
  return age > -tick && age < tick;
}

}  // namespace

bool FileStamp::operator==(const FileStamp& other) const {
  return bytes == other.bytes && Equal(modified, other.modified) && Equal(changed, other.changed);
}

StatusOr<MappedFile> MappedFile::Open(const std::string& path, Links links) {
  MappedFile file;
  file.path_ = path;
  const int flags = links == Links::kRefuse ? O_RDONLY | O_NOFOLLOW : O_RDONLY;
  ELASTOR_ASSIGN_OR_RETURN(file.descriptor_, OpenFile(path, flags));
  struct stat facts = {};
  if (fstat(file.descriptor_, &facts) != 0) return SystemError(path, "stat");
  if (!S_ISREG(facts.st_mode)) return UserError(path + ": a pipe; expected a file");
  if (facts.st_size == 0) return file;
  void* const mapped = mmap(nullptr, facts.st_size, PROT_READ, MAP_SHARED, file.descriptor_, 0);
  if (mapped == MAP_FAILED) {
    return MachineError(path + ": cannot map " + std::to_string(facts.st_size) +
                        " bytes: " + std::strerror(errno));
  }
  file.data_ = static_cast<const char*>(mapped);
  file.bytes_ = facts.st_size;
  file.watch_ = std::make_unique<MappingWatch>(static_cast<char*>(mapped), file.bytes_);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(watch_, other.watch_);
  return *this;
}

MappedFile::~MappedFile() {
  watch_.reset();
  if (data_ != nullptr) munmap(const_cast<char*>(data_), bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

Status MappedFile::CutOff(int64_t found) const {
  return MachineError(path_ + ": cut off at byte " + std::to_string(found) +
                      " while it was read; expected " + std::to_string(bytes_) + " bytes");
}

Status MappedFile::CheckReadable() const {
  if (watch_ == nullptr || watch_->unreadable_at() < 0) return OkStatus();
  struct stat facts = {};
  if (fstat(descriptor_, &facts) == 0 && facts.st_size < bytes_) return CutOff(facts.st_size);
  return MachineError(path_ + ": cannot read at byte " + std::to_string(watch_->unreadable_at()) +
                      ": an error of the disk or of the network that holds it");
}

StatusOr<FileStamp> MappedFile::Stamp() const {
  struct stat facts = {};
  if (fstat(descriptor_, &facts) != 0) {
    return MachineError(path_ + ": stat: " + std::strerror(errno));
  }
  if (facts.st_size < bytes_) return CutOff(facts.st_size);
  return FileStamp{facts.st_size, facts.st_mtim, facts.st_ctim, IsFresh(facts.st_ctim)};
}

}  // namespace elastor
