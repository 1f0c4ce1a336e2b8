#ifndef ELASTOR_TRAINER_CHECKPOINT_SAFETENSORS_H_
#define ELASTOR_TRAINER_CHECKPOINT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/mapped_file.h"
#include "core/base/status.h"

namespace elastor {

// Files of named tensors in the safetensors format, which Python's `safetensors` reads and writes:
// the length of the header (u64), the header (JSON: name -> dtype, shape, data_offsets), the
// tensors back to back, row-major, all little-endian.

enum class TensorType { kF32, kI64, kU8 };

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;

  int64_t bytes() const;  // CHECKs that it fits
};

// In an expected shape, stands for any length.
inline constexpr int64_t kAnyLength = -1;

// Facts that a file must match before its header is trusted. The reader verifies the data itself.
struct SafetensorsFacts {
  int64_t bytes = 0;         // size of the file
  uint64_t header_xxh3 = 0;  // XXH3-64 of the length and the header
  bool operator==(const SafetensorsFacts&) const = default;
};

// Writes one file front to back, so that tensors need not lie in memory as a whole. Nothing is at
// `path` before Commit (AtomicFileWriter). Not thread-safe.
class SafetensorsWriter {
 public:
  // tensors: in the order of their data, I64 before others so that every element is aligned; those
  // of U8 have whole words of 4 bytes.
  static StatusOr<SafetensorsWriter> Open(const std::string& path,
                                          std::span<const TensorSpec> tensors);

  // Appends the next elements of the tensors' data.
  template <typename T>
  Status Append(std::span<const T> values) {
    return AppendBytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  // Publishes the file. REQUIRES: all data was appended; nothing is called afterwards.
  StatusOr<SafetensorsFacts> Commit();

 private:
  SafetensorsWriter(AtomicFileWriter file, int64_t data_bytes);
  Status AppendBytes(const char* bytes, size_t size);
  Status Flush();

  AtomicFileWriter file_;
  int64_t missing_bytes_;  // data that is not appended yet
  std::string buffer_;
  SafetensorsFacts facts_;
};

// A file mapped into memory. Thread-safe; views live as long as the object.
class SafetensorsFile {
 public:
  // User error naming the file when it is missing, a symbolic link, differs from `expected` or is
  // not in the format. Reads the header only.
  static StatusOr<SafetensorsFile> Open(const std::string& path,
                                        const std::optional<SafetensorsFacts>& expected);

  const std::string& path() const { return file_.path(); }
  // Machine error when bytes of the file that were used since Open could not be read. To be called
  // when a use is over.
  Status CheckReadable() const { return file_.CheckReadable(); }
  // The file's tensors in the order of their data.
  std::span<const TensorSpec> tensors() const { return tensors_; }

  // Returns a tensor's elements; T is float, int64_t or uint8_t. User error naming file and tensor
  // when there is none with the expected name, type and shape (which may hold kAnyLength).
  template <typename T>
  StatusOr<std::span<const T>> Find(const TensorSpec& expected) const;

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  Status Verify(const SafetensorsFacts& expected) const;
  Status ParseHeader();

  MappedFile file_;
  std::vector<TensorSpec> tensors_;
  std::vector<const char*> data_;  // first byte of each tensor's data
};

// Returns a type and a shape as messages show them: "F32 [3, 4]".
std::string TensorText(TensorType type, std::span<const int64_t> shape);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_SAFETENSORS_H_
