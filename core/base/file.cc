#include "core/base/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace elastor {

Status SystemError(const std::string& path, const char* call) {
  const int reason = errno;
  const std::string message = path + ": " + call + ": " + std::strerror(reason);
  switch (reason) {
    case EACCES:
    case EEXIST:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOTDIR:
    case ENOTEMPTY:
    case EPERM:
    case EROFS:
      return UserError(message);
    default:
      return MachineError(message);
  }
}

namespace {

constexpr std::string_view kTemporary = ".tmp";

// Calls a system call until no signal interrupts it.
template <typename Call>
auto Retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// What a path leads to, if that is no file and no directory; null otherwise.
const char* KindOf(const struct stat& facts) {
  switch (facts.st_mode & S_IFMT) {
    case S_IFLNK:
      return "a symbolic link";
    case S_IFIFO:
      return "a named pipe";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    case S_IFSOCK:
      return "a socket";
    default:
      return nullptr;
  }
}

Status CheckIsFile(const std::string& path, const struct stat& facts) {
  const char* const kind = KindOf(facts);
  if (kind == nullptr) return OkStatus();
  return UserError(path + ": " + kind +
                   (S_ISLNK(facts.st_mode) ? "; expected the file itself" : "; expected a file"));
}

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

std::atomic<int> syncs = 0;  // that have begun and not ended

Status Sync(const std::string& path, int descriptor) {
  ++syncs;
  const int error = Retry([&] { return fsync(descriptor); }) == 0 ? 0 : errno;
  --syncs;
  errno = error;
  return error == 0 ? OkStatus() : SystemError(path, "fsync");
}

// Makes the names in a directory durable.
Status SyncDirectory(const std::string& path) {
  const Descriptor directory(
      Retry([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (directory.value() < 0) return SystemError(path, "open");
  return Sync(path, directory.value());
}

// Makes one directory whose parent exists.
Status MakeOneDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return SyncDirectory(ParentOf(path));
  const int reason = errno;
  struct stat info;
  if (reason == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return OkStatus();
  }
  errno = reason;
  return SystemError(path, "mkdir");
}

}  // namespace

StatusOr<int> OpenFile(const std::string& path, int flags) {
  if ((flags & O_CREAT) != 0) flags |= O_NOFOLLOW;
  const bool follows = (flags & O_NOFOLLOW) == 0;
  const bool only_reads = (flags & O_ACCMODE) == O_RDONLY;
  struct stat facts;
  // Before it is opened, because opening a device may act on it.
  if ((follows ? stat : lstat)(path.c_str(), &facts) == 0 &&
      !(S_ISFIFO(facts.st_mode) && only_reads)) {
    ELASTOR_RETURN_IF_ERROR(CheckIsFile(path, facts));
  }
  constexpr int kNeverWait = O_NONBLOCK | O_NOCTTY;
  constexpr int kPermissions = 0666;
  const int file =
      Retry([&] { return open(path.c_str(), flags | O_CLOEXEC | kNeverWait, kPermissions); });
  if (file < 0) return SystemError(path, "open");
  const Status checked = [&] {
    struct statfs system;
    if (fstat(file, &facts) != 0) return SystemError(path, "stat");
    const bool nameless = S_ISFIFO(facts.st_mode) && only_reads && fstatfs(file, &system) == 0 &&
                          system.f_type == PIPEFS_MAGIC;
    if (!nameless) ELASTOR_RETURN_IF_ERROR(CheckIsFile(path, facts));
    if (S_ISDIR(facts.st_mode)) {
      errno = EISDIR;
      return SystemError(path, "open");
    }
    // Without it a file stays: those of /proc may wait for events.
    if (!S_ISFIFO(facts.st_mode)) return OkStatus();
    const int now = fcntl(file, F_GETFL);
    return fcntl(file, F_SETFL, now & ~O_NONBLOCK) == 0 ? OkStatus() : SystemError(path, "open");
  }();
  if (checked.ok()) return file;
  close(file);
  return checked;
}

StatusOr<int> OpenNewFile(const std::string& path, int permissions) {
  struct stat facts;
  if (lstat(path.c_str(), &facts) == 0) {
    ELASTOR_RETURN_IF_ERROR(CheckIsFile(path, facts));
    if (!S_ISDIR(facts.st_mode) && unlink(path.c_str()) != 0 && errno != ENOENT) {
      return SystemError(path, "unlink");
    }
  }
  const int file =
      Retry([&] { return open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, permissions); });
  if (file < 0) return SystemError(path, "open");
  return file;
}

StatusOr<std::string> ReadFile(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const int opened, OpenFile(path, O_RDONLY));
  const Descriptor file(opened);
  struct stat info;
  if (fstat(file.value(), &info) != 0) return SystemError(path, "stat");

  // The size is a hint: it may change, and is 0 for pipes.
  std::string bytes(static_cast<size_t>(info.st_size) + 1, '\0');
  size_t length = 0;
  while (true) {
    if (length == bytes.size()) bytes.resize(2 * bytes.size());
    const ssize_t count =
        Retry([&] { return read(file.value(), bytes.data() + length, bytes.size() - length); });
    if (count < 0) return SystemError(path, "read");
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  bytes.resize(length);
  return bytes;
}

Status ReadFileInPieces(const std::string& path, size_t piece_bytes,
                        const std::function<void(std::string_view)>& use) {
  ELASTOR_ASSIGN_OR_RETURN(const int opened, OpenFile(path, O_RDONLY));
  const Descriptor file(opened);
  const auto piece = std::make_unique_for_overwrite<char[]>(piece_bytes);
  while (true) {
    const ssize_t count = Retry([&] { return read(file.value(), piece.get(), piece_bytes); });
    if (count < 0) return SystemError(path, "read");
    if (count == 0) return OkStatus();
    use({piece.get(), static_cast<size_t>(count)});
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  StatusOr<AtomicFileWriter> writer = AtomicFileWriter::Open(path);
  if (!writer.ok()) return writer.status();
  ELASTOR_RETURN_IF_ERROR(writer->Append(bytes));
  return writer->Commit();
}

StatusOr<bool> IsThere(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return SystemError(path, "stat");
}

StatusOr<std::set<std::string>> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    names.insert(entry->path().filename());
  }
  if (!error || error == std::errc::no_such_file_or_directory) return names;
  errno = error.value();
  return SystemError(directory, "list");
}

Status MakeDirectory(const std::string& path) {
  if (path.empty()) return UserError("a directory's path is empty");
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if (path[end - 1] == '/') continue;
    ELASTOR_RETURN_IF_ERROR(MakeOneDirectory(path.substr(0, end)));
  }
  return path.back() == '/' ? OkStatus() : MakeOneDirectory(path);
}

Status MakeOwnDirectory(const std::string& path) {
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(ParentOf(path)));
  if (mkdir(path.c_str(), 0777) != 0) return SystemError(path, "mkdir");
  return SyncDirectory(ParentOf(path));
}

Status PublishDirectory(const std::string& from, const std::string& to) {
  ELASTOR_RETURN_IF_ERROR(SyncDirectory(from));
  if (rename(from.c_str(), to.c_str()) != 0) return SystemError(to, "rename");
  return SyncDirectory(ParentOf(to));
}

Status ReplaceDirectory(const std::string& from, const std::string& to) {
  const std::string old = to + ".old";
  ELASTOR_RETURN_IF_ERROR(SyncDirectory(from));
  if (Exists(to)) {
    ELASTOR_RETURN_IF_ERROR(RemoveDirectory(old));
    if (rename(to.c_str(), old.c_str()) != 0) return SystemError(old, "rename");
  }
  ELASTOR_RETURN_IF_ERROR(PublishDirectory(from, to));
  return RemoveDirectory(old);
}

std::string DirectoryToRead(const std::string& path) {
  const std::string old = path + ".old";
  return !Exists(path) && Exists(old) ? old : path;
}

bool IsSyncing() { return syncs > 0; }

Status RemoveDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return OkStatus();
  errno = error.value();
  return SystemError(path, "remove");
}

Status RemoveRemains(const std::string& path, const std::function<bool(std::string_view)>& is_own) {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(path));
  for (const std::string& name : names) {
    std::string_view own = name;
    if (own.ends_with(kTemporary)) own.remove_suffix(kTemporary.size());
    if (!is_own(own)) {
      return UserError(path + ": holds '" + name +
                       "', and would be removed; expected another --output_dir");
    }
  }
  return RemoveDirectory(path);
}

AtomicFileWriter::AtomicFileWriter(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

AtomicFileWriter::AtomicFileWriter(AtomicFileWriter&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(TemporaryPath().c_str());
}

StatusOr<AtomicFileWriter> AtomicFileWriter::Open(const std::string& path) {
  struct stat facts;
  // A device would be replaced too.
  if (stat(path.c_str(), &facts) == 0) ELASTOR_RETURN_IF_ERROR(CheckIsFile(path, facts));
  ELASTOR_ASSIGN_OR_RETURN(const int descriptor, OpenNewFile(path + std::string(kTemporary)));
  return AtomicFileWriter(path, descriptor);
}

std::string AtomicFileWriter::TemporaryPath() const { return path_ + std::string(kTemporary); }

Status AtomicFileWriter::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = Retry([&] { return write(descriptor_, bytes.data(), bytes.size()); });
    if (count < 0) return SystemError(TemporaryPath(), "write");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return OkStatus();
}

Status AtomicFileWriter::Commit() {
  ELASTOR_RETURN_IF_ERROR(Sync(TemporaryPath(), descriptor_));
  // Network file systems report a failed write only here.
  if (close(descriptor_) != 0) {
    const Status failed = SystemError(TemporaryPath(), "close");
    descriptor_ = -1;
    unlink(TemporaryPath().c_str());
    return failed;
  }
  descriptor_ = -1;
  if (rename(TemporaryPath().c_str(), path_.c_str()) != 0) {
    const Status failed = SystemError(path_, "rename");
    unlink(TemporaryPath().c_str());
    return failed;
  }
  return SyncDirectory(ParentOf(path_));
}

}  // namespace elastor
