#ifndef ELASTOR_CORE_BASE_MAPPED_FILE_H_
#define ELASTOR_CORE_BASE_MAPPED_FILE_H_

#include <time.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/mapping_watch.h"
#include "core/base/status.h"

namespace elastor {

// The system's metadata of a file. If two stamps are equal, the file was not written in between
// (docs/reference/data_format.md has the exceptions).
struct FileStamp {
  int64_t bytes = 0;
  timespec modified = {};
  timespec changed = {};  // time of the last change, even one that sets `modified` back
  // Whether a write after the stamp was taken could leave the same stamp, because file clocks have
  // a coarse tick. Comparisons ignore it.
  bool fresh = false;

  bool operator==(const FileStamp& other) const;
};

// A file mapped into memory, read-only. A page that cannot be read reads as zeros
// (mapping_watch.h), and CheckReadable reports it: call it after using the bytes. Thread-safe.
class MappedFile {
 public:
  enum class Links { kFollow, kRefuse };
  // Errors are those of core/base/file.h; user error if the path is not a regular file.
  static StatusOr<MappedFile> Open(const std::string& path, Links links);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const char* data() const { return data_; }  // null when the file is empty
  int64_t bytes() const { return bytes_; }

  // Returns a machine error naming file and offset if a page could not be read since Open.
  Status CheckReadable() const;
  // Returns the file's stamp as of now. Machine error if the file has become shorter or the system
  // call fails.
  StatusOr<FileStamp> Stamp() const;

 private:
  MappedFile() = default;
  Status CutOff(int64_t found) const;

  std::string path_;
  int descriptor_ = -1;
  const char* data_ = nullptr;
  int64_t bytes_ = 0;
  std::unique_ptr<MappingWatch> watch_;  // null when the file is empty
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_MAPPED_FILE_H_
