#ifndef ELASTOR_TRAINER_PREPARE_SPILL_H_
#define ELASTOR_TRAINER_PREPARE_SPILL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/prepare/row_parser.h"

namespace elastor {

// Ids of 4 or 8 bytes in memory.
class IdArray {
 public:
  IdArray(const char* data, int id_bytes) : data_(data), id_bytes_(id_bytes) {}
  uint64_t operator[](int64_t i) const {
    if (id_bytes_ == 8) return reinterpret_cast<const uint64_t*>(data_)[i];
    return reinterpret_cast<const uint32_t*>(data_)[i];
  }

 private:
  const char* data_;
  int id_bytes_;
};

// Parsed rows of one chunk as they lie in the spill.
struct SpilledChunk {
  int64_t first_row = 0;
  int64_t rows = 0;
  const float* labels = nullptr;
  const double* numeric = nullptr;     // [rows][numeric fields]
  IdArray ids = {nullptr, 4};          // [rows][CATEGORICAL fields]
  const uint32_t* bag_ends = nullptr;  // [rows][MULTI_HOT fields]
  IdArray bags = {nullptr, 4};
};

// The parsed rows of all input in one working file, so that text is read and parsed once although
// the vocabularies are known only at its end. The file has no name once made, so a killed process
// leaves nothing behind. Not thread-safe; reading is, after Seal.
class Spill {
 public:
  // `id_bytes`: 4 or 8, enough for every id.
  static StatusOr<std::unique_ptr<Spill>> Create(const std::string& path, int id_bytes);
  ~Spill();

  Status Append(const ParsedChunk& chunk);
  int64_t rows() const { return rows_; }

  // Ends appending; the chunks can now be read.
  Status Seal();
  int64_t chunks() const { return static_cast<int64_t>(places_.size()); }
  SpilledChunk chunk(int64_t number) const;
  int64_t ChunkOfRow(int64_t row) const;

 private:
  struct Place {
    int64_t first_row, rows;
    int64_t labels_at, numeric_at, ids_at, ends_at, bags_at;  // byte offsets in the file
  };
  Spill(std::string path, int id_bytes) : path_(std::move(path)), id_bytes_(id_bytes) {}
  template <typename T>
  int64_t Put(const std::vector<T>& values);
  int64_t PutIds(const std::vector<uint64_t>& ids);

  const std::string path_;
  const int id_bytes_;
  int file_ = -1;
  std::string buffer_;
  std::vector<Place> places_;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
  const char* data_ = nullptr;  // mapped after Seal
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SPILL_H_
