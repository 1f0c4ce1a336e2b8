#ifndef ELASTOR_EMBEDDING_ROW_STORE_H_
#define ELASTOR_EMBEDDING_ROW_STORE_H_

#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/digest.h"
#include "core/base/leaves.h"
#include "embedding/row_index.h"
#include "embedding/table.h"
#include "embedding/zero_pages.h"

namespace elastor {

// Shape of a stored row: weights, then optimizer slots, then padding.
struct RowShape {
  int64_t width = 0;
  int64_t slots = 0;  // elements
  int64_t elements() const { return width + slots; }
};

// Returns the bytes from one row to the next: whole cache lines, or a power of two within one line,
// so that a row never touches more lines than it must.
inline int64_t RowBytes(const RowShape& shape, int64_t element_bytes) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = shape.elements() * element_bytes;
  if (bytes <= kLine) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
  return (bytes + kLine - 1) / kLine * kLine;
}

// The rows of one table on one rank, in one array, for the partitions that the rank stores
// (row_index.h). A row comes into being, with its initial values, when it is first created; its
// address holds until the store is destroyed. Address space for all rows is taken at once, memory
// as rows are created. The time of every call, visits included, follows the rows that exist, not
// those that there is room for.
//
// Every row is marked touched or untouched, and published or unpublished; the caller decides when
// marks are cleared. If new rows
// are touched, every row also has room for its record in the digest (kRecordBytes). It holds the
// record that the caller last set, or none.
//
// Initial values: weights normal with the table's stddev, a pure function of (seed, table name,
// key, column); slots constant.
//
// Thread-safety: calls for different keys may run together; visits exclude creation.
template <typename T>
class RowStore {
 public:
  struct Initial {
    uint64_t seed = 0;
    T slot = 0;  // value of every slot element
  };

  // The mark of a row when it is created.
  enum class NewRows { kUntouched, kTouched };
  static constexpr int64_t kRecordBytes = sizeof(Digest);
  // partitions: the partitions that this rank stores, ascending.
  RowStore(const TableSpec& table, int64_t slots, std::vector<int32_t> partitions,
           const Initial& initial, NewRows new_rows = NewRows::kUntouched);

  // Sets rows[i] to the row of keys[i] and creates rows that do not exist yet.
  void FindOrCreate(std::span<const int64_t> keys, T** rows);
  // Sets rows[i] to the row of keys[i], or to nullptr if it does not exist.
  void Find(std::span<const int64_t> keys, T** rows) const;
  // Writes the initial values of a row (weights and slots) to `row` without creating it.
  void MakeInitial(int64_t key, T* row) const;
  // Returns the row of a key for the caller to fill in. If *created is true, its values are
  // arbitrary.
  T* Claim(int64_t key, bool* created);
  // Removes all rows. Each is made anew when it is next created, and has no record. REQUIRES: no
  // row is touched.
  void Clear();

  void SetTouched(int64_t key, bool touched);
  // Marks existing rows as touched.
  void Touch(std::span<const int64_t> keys);
  // Marks all rows as untouched.
  void ForgetTouched();
  // Do the same with the other mark.
  void MarkUnpublished(std::span<const int64_t> keys);
  void ForgetUnpublished();

  // REQUIRES: NewRows::kTouched.
  void SetRecord(int64_t key, const Digest& record);
  // Adds the records of the rows of part `part` of `parts`.
  void AddRecords(RowSet set, int part, int parts, Digest* digest) const;

  // Visits the rows of part `part` of `parts` in blocks: keys[i] has row rows[i].
  void ForEachBlock(
      RowSet set, int part, int parts,
      const std::function<void(std::span<const int64_t> keys, T* const* rows)>& fn) const;
  // Adds the rows of part `part` of `parts` to counts[partition of the key].
  void CountRows(RowSet set, int part, int parts, int64_t* counts) const;
  // Visits the rows of the partitions [begin, end) in blocks, keys ascending.
  void ForEachOfPartitions(
      RowSet set, const Range& partitions,
      const std::function<void(std::span<const int64_t> keys, T* const* rows)>& fn) const;

  // Returns the bytes of memory when every row exists.
  int64_t memory_bytes() const {
    return rows_ * (stride_ * static_cast<int64_t>(sizeof(T)) + record_bytes());
  }

 private:
  int64_t IndexOf(int64_t key) const;
  void MarkCreated(int64_t index);
  void SetMarks(const ZeroPages& marks, std::span<const int64_t> keys);
  void ClearMarks(const ZeroPages& marks);
  int64_t record_bytes() const { return new_rows_ == NewRows::kTouched ? kRecordBytes : 0; }
  Digest* Records() const { return static_cast<Digest*>(records_.data()); }
  // Returns a word of 64 bits, one for each row from 64 * word on: whether the row is in the set.
  uint64_t WordOf(RowSet set, int64_t word) const;
  // Calls fn(part) for parts of the range, ascending and each within one group, that hold all rows
  // in it that exist.
  template <typename Fn>
  void ForEachGroup(const Range& indexes, const Fn& fn) const;
  // Calls fn(index) for the rows of a set in [begin, end), ascending, word by word.
  template <typename Fn>
  void ForEachBit(RowSet set, const Range& indexes, const Fn& fn) const;
  // Does the same, and skips groups without rows.
  template <typename Fn>
  void ForEachIndex(RowSet set, const Range& indexes, const Fn& fn) const;
  T* RowAt(int64_t index) const { return static_cast<T*>(pages_.data()) + index * stride_; }

  // Constant after construction.
  RowShape shape_;
  double stddev_;
  uint64_t random_key_;
  T initial_slot_;
  int64_t table_rows_;
  NewRows new_rows_;
  StoredPartitions partitions_;
  int64_t rows_ = 0;
  int64_t stride_;  // elements from one row to the next

  ZeroPages pages_;
  ZeroPages present_;      // one bit a row
  ZeroPages touched_;      // one bit a row; set only for existing rows
  ZeroPages unpublished_;  // likewise
  ZeroPages groups_;       // one bit a group of rows: whether one of them may exist
  ZeroPages records_;      // a Digest a row, or nothing at all
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_STORE_H_
