#ifndef ELASTOR_TRAINER_PREPARE_ROWS_PACKED_COLUMN_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_PACKED_COLUMN_H_

#include <cstdint>
#include <cstring>
#include <string>

namespace elastor {

// A column of numbers in as few bytes each as its range needs: 0 to 8 for unsigned integers above
// the least one; numeric columns become integers where all values are, else f32 where that is
// exact, else f64. Reading any row costs one unaligned load.
class PackedColumn {
 public:
  // Appends a column of `count` numbers, `stride` apart, to *bytes. Columns need not be aligned;
  // Pad must follow the last one.
  template <typename T>
  static void AppendIntegers(const T* values, int64_t count, int64_t stride, std::string* bytes);
  // NaN is missing.
  static void AppendNumeric(const double* values, int64_t count, int64_t stride,
                            std::string* bytes);
  static void Pad(std::string* bytes) { bytes->append(8, '\0'); }

  // A view of the column that begins at `data`; *end receives where it ends.
  PackedColumn(const char* data, int64_t count, const char** end);
  PackedColumn() = default;

  uint64_t Integer(int64_t i) const { return base_ + Code(i); }
  double Numeric(int64_t i) const;
  // Numeric integers: code 0 is missing, else the value is least() + code - 1.
  bool integral() const { return kind_ == kIntegral; }
  int64_t least() const { return static_cast<int64_t>(base_); }
  uint64_t Code(int64_t i) const {
    uint64_t word;
    std::memcpy(&word, data_ + i * width_, sizeof(word));
    return word & mask_;
  }
  int width() const { return width_; }

 private:
  enum Kind : uint8_t { kInteger, kIntegral, kFloat, kDouble };
  static void AppendHeader(Kind kind, int width, uint64_t base, std::string* bytes);

  const char* data_ = nullptr;
  int width_ = 0;
  uint64_t mask_ = 0;
  uint64_t base_ = 0;
  Kind kind_ = kInteger;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_PACKED_COLUMN_H_
