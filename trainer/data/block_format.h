#ifndef ELASTOR_TRAINER_DATA_BLOCK_FORMAT_H_
#define ELASTOR_TRAINER_DATA_BLOCK_FORMAT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"

namespace elastor {

// Byte format of a prepared data set (docs/reference/data_format.md), shared by its writer and its
// reader.

inline constexpr int kPreparedVersion = 3;
// The version of sets with keyed fields, whose fields have id widths of their own.
inline constexpr int kKeyedVersion = 4;
inline constexpr char kPreparedFormat[] = "elastor-prepared";
inline constexpr char kMetaFile[] = "meta.json";

std::string SplitFileName(Split split);  // "train.rows", ...

// One entry of the index that ends a split file.
struct BlockEntry {
  uint64_t offset = 0;    // byte offset of the block in the file
  uint64_t bytes = 0;     // size of the block, a multiple of 8
  uint64_t checksum = 0;  // XXH3-64 of the block
};

// Returns the bytes of one id where all fields have the same: 8 when a table has more than 2^32
// rows, else 4.
int IdBytes(const DatasetInfo& info);

// Which fields have ids of 8 bytes, the others having 4. In a set with keyed fields they are the
// keyed ones and those with a table of more than 2^32 rows; in another set all are or none.
class IdWidths {
 public:
  explicit IdWidths(const DatasetInfo& info);
  bool wide(const DatasetInfo::Categorical& field) const {
    return keys_ ? field.keyed || field.ids > kMostNarrow : all_wide_;
  }
  // Number of fields with one id, and with bags: [0] of 4 bytes, [1] of 8 bytes.
  int64_t singles[2] = {0, 0};
  int64_t bags[2] = {0, 0};

 private:
  static constexpr int64_t kMostNarrow = int64_t{1} << 32;
  const bool keys_;
  const bool all_wide_;
};

// Byte offsets of the sections in a block of `rows` rows. All sections begin at multiples of 8
// bytes, in this order: labels f32[rows][labels]; if the data set has them, weights f32[rows],
// groups u64[rows], times i64[rows]; numeric f32[rows][numeric], pixels u8[rows][pixels];
// ids u32[rows][singles[0]], u64[rows][singles[1]]; ends u32[rows][bags[0]], u32[rows][bags[1]];
// the heap of 4-byte ids, then that of 8-byte ids. Bag b = row * bags[w] + field of width w holds
// heap[ends[b - 1], ends[b]) of its width, ends[-1] being 0.
struct BlockSections {
  BlockSections(const DatasetInfo& info, int64_t rows);
  int64_t weights_at = 0;
  int64_t groups_at = 0;
  int64_t times_at = 0;
  int64_t numeric_at = 0;
  int64_t pixels_at = 0;
  int64_t ids_at[2] = {0, 0};
  int64_t ends_at[2] = {0, 0};
  int64_t heap_at = 0;  // of 4-byte ids; that of 8-byte ids follows it
};

// Returns the bytes of one block. REQUIRES: `rows` has the shape of `info`, with ids in range, at
// most rows_per_block rows, and fewer than 2^32 ids in bags of a width.
std::string EncodeBlock(const DatasetInfo& info, const Rows& rows);

// Checks that the `bytes` bytes of a block of `rows` rows can be read as `info` says. Returns the
// first mistake (bags that do not fit the block, an id outside its table), or empty.
std::string BlockMistake(const DatasetInfo& info, const char* block, int64_t bytes, int64_t rows);

// Copies rows of verified blocks into a Rows. One reader is made per read. If another process
// writes to the block meanwhile, the copied values are arbitrary, but nothing outside the block is
// read.
class BlockReader {
 public:
  // Empties *rows and makes room for `count` rows.
  BlockReader(const DatasetInfo& info, int64_t count, Rows* rows);
  // Appends row `row` of a block of `block_rows` rows, which has `bytes` bytes from `block`.
  void Append(const char* block, int64_t bytes, int64_t block_rows, int64_t row);

 private:
  struct Field {
    bool bag;
    bool wide;  // ids of 8 bytes
  };
  void AppendIds(const char* block, int64_t bytes, int64_t block_rows,
                 const BlockSections& sections, int64_t row);

  const DatasetInfo& info_;
  const IdWidths widths_;
  std::vector<Field> fields_;
  BlockSections full_;                   // sections of a block of rows_per_block rows
  std::array<float, 256> pixel_values_;  // pixel byte -> the value it is read as
  Rows* rows_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_BLOCK_FORMAT_H_
