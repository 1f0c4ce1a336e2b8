#ifndef ELASTOR_TRAINER_DATA_WORK_FILE_H_
#define ELASTOR_TRAINER_DATA_WORK_FILE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/mapping_watch.h"
#include "core/base/status.h"

namespace elastor {

// A working file that several threads fill at places they have reserved. A full disk or a failed
// read is a machine error naming the file. Thread-safe, except for Map.
class WorkFile {
 public:
  // Opens the file, or makes it.
  static StatusOr<std::unique_ptr<WorkFile>> Open(const std::string& path);
  ~WorkFile();

  // Reserves `bytes` bytes for the caller alone and returns their offset, a multiple of 8.
  int64_t Reserve(int64_t bytes);
  // Marks all places before offset `bytes` as taken.
  void ReserveUpTo(int64_t bytes);
  Status WriteAt(int64_t at, std::string_view bytes);
  // Reads exactly `bytes` bytes.
  Status ReadAt(int64_t at, int64_t bytes, char* buffer) const;

  // Syncs the file: the bytes written so far survive a crash of the machine.
  Status Sync();
  // Maps everything reserved so far, for reading. Machine error when any of it, except padding, has
  // not been written. If the mapping loses its bytes later (the file is cut off, its disk fails),
  // the process ends with exit code 3 and a line naming the file.
  Status Map();
  // Returns the XXH3-64 of the mapped bytes, as text.
  StatusOr<std::string> Checksum() const;
  const char* data() const { return data_; }
  int64_t size() const { return mapped_; }
  // Releases the memory behind part of the mapping. It is read again when touched.
  void Forget(int64_t at, int64_t bytes) const;

 private:
  explicit WorkFile(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  int file_ = -1;
  std::atomic<int64_t> end_{0};
  const char* data_ = nullptr;
  int64_t mapped_ = 0;
  std::unique_ptr<MappingWatch> watch_;  // watches data_
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_WORK_FILE_H_
