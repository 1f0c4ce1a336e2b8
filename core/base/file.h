#ifndef ELASTOR_CORE_BASE_FILE_H_
#define ELASTOR_CORE_BASE_FILE_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace elastor {

// Reads and writes whole files, on a disk that may fill up and a machine that may stop at any
// moment. Every error names the path, the call and the system's reason: a user error when the path
// is at fault (no such file, no permission, ...), a machine error otherwise (disk full,
// input/output error, ...).

// Returns the status of a failed system call on a path, from errno.
Status SystemError(const std::string& path, const char* call);

// Opens a file by open(2)'s flags and returns its descriptor, which the caller closes. All files
// are opened here, because it never waits: user error in one line when a named pipe, a device or a
// socket stands where a file is expected. A pipe without a name may be read, as a shell makes for
// `<(command)`. With O_CREAT in the flags a symbolic link at the path is an error, not followed, so
// that nobody else decides which file is written.
StatusOr<int> OpenFile(const std::string& path, int flags);
// Makes a new file and opens it for reading and writing. It takes the place of a file that an
// interrupted process left there; anything else there is a user error.
StatusOr<int> OpenNewFile(const std::string& path, int permissions = 0666);

// Returns the file's bytes.
StatusOr<std::string> ReadFile(const std::string& path);
// Reads files too large for one buffer: calls `use` with pieces of at most `piece_bytes` bytes, in
// order.
Status ReadFileInPieces(const std::string& path, size_t piece_bytes,
                        const std::function<void(std::string_view)>& use);

// Replaces or creates the file so that after a crash at any moment `path` holds either the old
// bytes or the new ones, whole; on return they are on the disk. On failure the old file stays.
Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// Returns whether something exists at the path, following links. A path that the system refuses to
// look up is an error, not a missing file.
StatusOr<bool> IsThere(const std::string& path);

// Returns the names in a directory; none if the directory does not exist.
StatusOr<std::set<std::string>> NamesIn(const std::string& directory);

// Makes the directory and its missing parents; on return they are on the disk. The directory may
// exist already.
Status MakeDirectory(const std::string& path);

// Makes the directory, and its parents, for files that nobody else decides on: an error if anything
// is there, as a link or a folder that another user has put there.
Status MakeOwnDirectory(const std::string& path);

// Renames the directory `from` to its final name `to`, atomically and on the disk on return. After
// a crash `to` is complete or does not exist. User error when `to` exists and is not an empty
// directory.
Status PublishDirectory(const std::string& from, const std::string& to);

// Does the same, but replaces `to` if it exists. Meanwhile the old directory is at `to`.old: after
// a crash at any moment DirectoryToRead(to) names the complete old or the complete new directory.
Status ReplaceDirectory(const std::string& from, const std::string& to);
// Returns `path`, or `path`.old if only that exists.
std::string DirectoryToRead(const std::string& path);

// Returns whether one of these functions is waiting for fsync.
bool IsSyncing();

// Removes the directory and its contents; it need not exist.
Status RemoveDirectory(const std::string& path);
// Does the same to what a process that was killed has left in making a directory: `is_own` tells
// which names it makes there, and with .tmp they are temporary files. User error, and nothing is
// removed, when there is another name, or when a file stands at the path.
Status RemoveRemains(const std::string& path, const std::function<bool(std::string_view)>& is_own);

// The same guarantee as WriteFileAtomically for files too large for one buffer: bytes go to
// `path`.tmp, and Commit renames it. Destroyed without Commit, it removes the temporary file and
// leaves `path` as it was. Not thread-safe; one writer a path.
class AtomicFileWriter {
 public:
  static StatusOr<AtomicFileWriter> Open(const std::string& path);
  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&&) = delete;
  ~AtomicFileWriter();

  // Writes at once, without a buffer: append pieces of some KiB or more. After an error, only
  // destroy the object.
  Status Append(std::string_view bytes);
  // REQUIRES: every Append was ok; nothing is called afterwards.
  Status Commit();

 private:
  AtomicFileWriter(std::string path, int descriptor);
  std::string TemporaryPath() const;

  std::string path_;
  int descriptor_;  // -1 after Commit or a move
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_FILE_H_
