#ifndef ELASTOR_CORE_BASE_MAPPED_FILE_H_
#define ELASTOR_CORE_BASE_MAPPED_FILE_H_

#include <time.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/mapping_watch.h"
#include "core/base/status.h"

namespace elastor {

// What the system says about a file; equal stamps: nobody has written in between
// (docs/reference/data_format.md has the exceptions).
struct FileStamp {
  int64_t bytes = 0;
  timespec modified = {};
  timespec changed = {};  // also by who sets `modified` back
  // Whether a write after the stamp was taken could leave the same one, because clocks of files
  // tick. Not compared.
  bool fresh = false;

  bool operator==(const FileStamp& other) const;
};

// A file mapped into memory, read-only. A page that cannot be read reads as zeros
// (mapping_watch.h), and CheckReadable tells: whoever has used the bytes asks afterwards.
// Thread-safe.
class MappedFile {
 public:
  enum class Links { kFollow, kRefuse };
  // Errors as in core/base/file.h; user error when it is no regular file.
  static StatusOr<MappedFile> Open(const std::string& path, Links links);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const char* data() const { return data_; }  // null when the file is empty
  int64_t bytes() const { return bytes_; }

  // Machine error naming file and offset when a page could not be read since Open.
  Status CheckReadable() const;
  // As of now. Machine error when the file has become shorter, or the system does not tell.
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
