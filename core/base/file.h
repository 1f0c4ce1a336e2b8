#ifndef ELASTOR_CORE_BASE_FILE_H_
#define ELASTOR_CORE_BASE_FILE_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace elastor {

// Whole files, on a disk that may fill up and a machine that may stop at any moment. Every error
// names the path, the call and the system's reason: a user error when the path is at fault (no such
// file, no permission, ...), a machine error otherwise (disk full, input/output error, ...).

// The status of a failed system call on a path, by errno.
Status SystemError(const std::string& path, const char* call);

// The file's bytes.
StatusOr<std::string> ReadFile(const std::string& path);
// The same for files too large for one buffer: `use` is called with pieces of at most `piece_bytes`
// bytes, in order.
Status ReadFileInPieces(const std::string& path, size_t piece_bytes,
                        const std::function<void(std::string_view)>& use);

// Replaces or creates the file so that after a crash at any moment `path` holds either the old
// bytes or the new ones, whole; on return they are on the disk. On failure the old file stays.
Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// Whether there is something at the path; links are followed. A path that the system refuses to
// look at is an error, and not taken for one at which there is nothing.
StatusOr<bool> IsThere(const std::string& path);

// The names in a directory; none when there is no such directory.
StatusOr<std::set<std::string>> NamesIn(const std::string& directory);

// Makes the directory and its missing parents, on the disk on return. It may exist already.
Status MakeDirectory(const std::string& path);

// Gives a directory its final name, at once and on the disk on return: what was written into `from`
// is then whole or not there. User error when `to` exists and is not an empty directory.
Status PublishDirectory(const std::string& from, const std::string& to);

// The same when `to` may exist already; it is replaced. While that happens the old one is at
// `to`.old: after a crash at any moment DirectoryToRead(to) is the old one or the new one, whole.
Status ReplaceDirectory(const std::string& from, const std::string& to);
// `path`, or `path`.old when only that exists.
std::string DirectoryToRead(const std::string& path);

// Whether a call of these is waiting for the system to have what was written on the disk (fsync).
bool IsSyncing();

// Removes the directory with all that is in it; it need not exist.
Status RemoveDirectory(const std::string& path);

// The same guarantee as WriteFileAtomically for files too large for one buffer: bytes go to
// `path`.tmp, and Commit renames it. Destroyed without Commit, it removes the temporary file and
// leaves `path` as it was. Not thread-safe; one writer a path.
class AtomicFileWriter {
 public:
  static StatusOr<AtomicFileWriter> Open(const std::string& path);
  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&&) = delete;
  ~AtomicFileWriter();

  // Writes at once, without a buffer: append pieces of some KiB or more. After an error only
  // destruction makes sense.
  Status Append(std::string_view bytes);
  // REQUIRES: every Append was ok; nothing is called afterwards.
  Status Commit();

 private:
  AtomicFileWriter(std::string path, int descriptor);
  std::string TemporaryPath() const { return path_ + ".tmp"; }

  std::string path_;
  int descriptor_;  // -1 after Commit or a move
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_FILE_H_
