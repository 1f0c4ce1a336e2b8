#ifndef ELASTOR_EMBEDDING_ROW_STORE_H_
#define ELASTOR_EMBEDDING_ROW_STORE_H_

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "core/base/leaves.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/key_slots.h"
#include "embedding/key_space.h"
#include "embedding/row_index.h"
#include "embedding/row_rules.h"
#include "embedding/row_tier.h"
#include "embedding/table.h"
#include "embedding/zero_pages.h"

namespace elastor {

// Shape of a stored row: weights, then optimizer slots, then padding.
struct RowShape {
  int64_t width = 0;
  int64_t slots = 0;  // elements
  int64_t elements() const { return width + slots; }
};

// Returns the shape of a table's rows.
inline RowShape RowShapeOf(const TableSpec& table, OptimizerKind kind) {
  return {table.width, table.counts() ? 0 : SlotElements(kind, table.width)};
}

// Returns the bytes from one row to the next: whole cache lines, or a power of two within one line,
// so that a row never touches more lines than it must.
inline int64_t RowBytes(const RowShape& shape, int64_t element_bytes) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = shape.elements() * element_bytes;
  if (bytes <= kLine) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
  return (bytes + kLine - 1) / kLine * kLine;
}

// The rows of one table on one rank, in one array, for the partitions that the rank stores. A row's
// index is that of its key (row_index.h) or, in a keyed table, the slot that its key was given
// (key_slots.h). A row comes into being, with its initial values, when it is first created; its
// address holds until it is removed or the store is destroyed. Address space for all rows is taken
// at once (a keyed table: for those that the host's memory holds), memory as rows are created. The
// time of every call, visits included, follows the rows that exist, not those that there is room
// for.
//
// Behind a tier (row_tier.h) the rows themselves lie in a file; keys, marks, uses and records stay
// in memory. Visits read the file ahead and leave the memory of the tier to the batches.
//
// Rows of a keyed table may be removed, and may have a use (TableSpec::keeps_use). Visits then hand
// out copies of rows with kUseElements more elements. The keys of rows that were removed are *gone*
// until marks of touched rows are cleared, if the removed row had a record. A store that notes
// publications also knows of which rows the last one has a copy; the keys of such rows that were
// removed since are *recalled*.
//
// Every row is marked touched or untouched, and published or unpublished; the caller decides when
// marks are cleared. If new rows
// are touched, every row also has room for its record in the digest (kRecordBytes). It holds the
// record that the caller last set, or none.
//
// Initial values: weights normal with the table's stddev, a pure function of (seed, table name,
// key, column); slots constant.
//
// Thread-safety: calls for different keys may run together, but in a keyed table nothing may run
// beside FindOrCreate and only other parts beside CreateMissing; visits exclude creation.
template <typename T>
class RowStore {
 public:
  struct Initial {
    uint64_t seed = 0;
    T slot = 0;  // value of every slot element
  };

  // The mark of a row when it is created.
  enum class NewRows { kUntouched, kTouched };
  // Whether a keyed table notes of which rows the last publication has a copy.
  enum class Published { kUnknown, kNoted };
  static constexpr int64_t kRecordBytes = sizeof(Digest);

  // partitions: the partitions that this rank stores, ascending.
  RowStore(const TableSpec& table, int64_t slots, std::vector<int32_t> partitions,
           const Initial& initial, NewRows new_rows = NewRows::kUntouched,
           Published published = Published::kUnknown, RowTier* tier = nullptr);

  // Sets rows[i] to the row of keys[i] and creates rows that do not exist yet.
  void FindOrCreate(std::span<const int64_t> keys, T** rows);
  // Sets rows[i] to the row of keys[i], or to nullptr if it does not exist.
  void Find(std::span<const int64_t> keys, T** rows) const;
  // Keyed tables: creates the rows that Find did not find (rows[i] is null), those of part `part`
  // of `parts` of the partitions.
  void CreateMissing(std::span<const int64_t> keys, T** rows, int part, int parts);
  // Keyed tables: returns a new row with its initial values. REQUIRES: there is none.
  T* Create(int64_t key);
  // Returns whether a key of a keyed table belongs to part `part` of `parts` of the partitions.
  bool IsInPart(int64_t key, int part, int parts) const {
    return slots_->NumberOf(key) % parts == part;
  }
  // Returns whether the row is one of this store's.
  bool Holds(const T* row) const { return row >= RowAt(0) && row < RowAt(rows_); }
  // Returns the index of one of this store's rows.
  int64_t IndexOfRow(const T* row) const;
  // Returns the indexes below which all rows lie.
  int64_t extent() const { return slots_ == nullptr ? rows_ : slots_->slots_used(); }
  // Behind a tier: appends the pages of the rows of these keys, those that are on the disk.
  void AddPages(std::span<const int64_t> keys, std::vector<RowTier::Page>* pages) const;
  // Writes the initial values of a row (weights and slots) to `row` without creating it.
  void MakeInitial(int64_t key, T* row) const;
  // Returns the row of a key for the caller to fill in. If *created is true, its values are
  // arbitrary.
  T* Claim(int64_t key, bool* created);
  // Removes all rows. Each is made anew when it is next created, and has no record. REQUIRES: no
  // row is touched.
  void Clear();

  // Keyed tables: removes the row of a key, if it exists.
  void Remove(int64_t key);
  // Keyed tables: fetches what finds the key into the cache.
  void PrefetchKey(int64_t key) const { slots_->Prefetch(key); }
  // Keyed tables: the same marks as Touch and MarkUnpublished, by the rows that Find gave.
  void TouchRows(std::span<T* const> rows);
  void MarkRowsUnpublished(std::span<T* const> rows);
  // Sets the uses of rows after a step that used them. counts[i]: how often the key of rows[i]
  // occurred; null if the rules do not count. now: RowRules::Now of the step. REQUIRES: keeps_use.
  void UseRows(const RowRules& rules, std::span<T* const> rows, const uint32_t* counts,
               int64_t now);
  // Reads the use of a row that Claim returned from kUseElements elements.
  void SetUse(const T* row, const T* elements);
  // Gives rows without a use this one, and marks them as touched: those of part `part` of `parts`.
  void BeginUses(uint64_t use, int part, int parts);
  // Calls fn(key, score) for the rows of part `part` of `parts`.
  void ForEachScore(const RowRules& rules, int part, int parts,
                    const std::function<void(int64_t key, uint64_t score)>& fn) const;
  // Calls fn(key) for the gone keys of the partitions, in order of (partition, key).
  void ForEachGone(const Range& partitions, const std::function<void(int64_t key)>& fn) const;
  // Returns the rows that exist. REQUIRES: keyed.
  int64_t live_rows() const { return slots_->size(); }
  // Adds them to counts[partition].
  void CountLive(int64_t* counts) const;

  void SetTouched(int64_t key, bool touched);
  // Marks existing rows as touched.
  void Touch(std::span<const int64_t> keys);
  // Marks all rows as untouched, and forgets gone keys.
  void ForgetTouched();
  // Do the same with the other mark. A store that notes publications takes it that there is one
  // now, which has all rows.
  void MarkUnpublished(std::span<const int64_t> keys);
  void ForgetUnpublished();
  // Marks those keys that have a row.
  void MarkExistingUnpublished(std::span<const int64_t> keys);
  // REQUIRES: Published::kNoted. Tells of a key whether the last publication has its row. Calls
  // fn(key) for the recalled keys of the partitions, in order of (partition, key).
  void NotePublished(int64_t key, bool has_row);
  void ForEachRecalled(const Range& partitions, const std::function<void(int64_t key)>& fn) const;

  // REQUIRES: NewRows::kTouched.
  void SetRecord(int64_t key, const Digest& record);
  // Adds the records of the rows of part `part` of `parts`; with kAll and kTouched, of gone keys
  // too.
  void AddRecords(RowSet set, int part, int parts, Digest* digest) const;

  // Visits the rows of part `part` of `parts` in blocks: keys[i] has row rows[i].
  void ForEachBlock(
      RowSet set, int part, int parts,
      const std::function<void(std::span<const int64_t> keys, T* const* rows)>& fn) const;
  // Adds the rows of part `part` of `parts` to counts[partition of the key].
  void CountRows(RowSet set, int part, int parts, int64_t* counts) const;
  // Visits the rows of the partitions [begin, end) in blocks, keys ascending within a partition.
  void ForEachOfPartitions(
      RowSet set, const Range& partitions,
      const std::function<void(std::span<const int64_t> keys, T* const* rows)>& fn) const;

  // Returns the elements of a row that a visit hands out.
  int64_t visited_elements() const { return shape_.elements() + (keeps_use_ ? kUseElements : 0); }

  // Returns the bytes of memory when every row of an array exists, or of a keyed table's rows and
  // keys now.
  int64_t memory_bytes() const;

 private:
  // Fills blocks of rows for a visit.
  class Block;

  ZeroPages MakePages(int64_t bytes, std::string_view what) const;
  // Makes what Clear empties, but for the keys.
  void MakeMarks(std::string_view what);
  int64_t IndexOf(int64_t key) const;
  int64_t KeyAt(int64_t index) const;
  // Gives a new key of a keyed table a row without values.
  T* NewRow(int64_t key);
  void SetRowMarks(const ZeroPages& marks, std::span<T* const> rows);
  uint64_t* Uses() const { return static_cast<uint64_t*>(uses_.data()); }
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
  // Does the same for a visit that reads rows; done is called behind the last of some rows, before
  // their pages leave memory.
  template <typename Fn, typename Done>
  void ForEachRowIndex(RowSet set, const Range& indexes, const Fn& fn, const Done& done) const;
  // Calls for_each(fn) and done. Behind a tier the pages of the rows are read before, whose indexes
  // for_each gives to a function as its first argument.
  template <typename ForEach, typename Fn, typename Done>
  void WithPages(const ForEach& for_each, const Fn& fn, const Done& done) const;
  int64_t row_bytes() const { return stride_ * static_cast<int64_t>(sizeof(T)); }
  // To be called before a row is written outside a batch, or first.
  void WillWrite(int64_t index) {
    if (region_ != nullptr) region_->Write(index * row_bytes(), row_bytes());
  }
  T* RowAt(int64_t index) const { return first_row_ + index * stride_; }

  // Constant after construction.
  RowShape shape_;
  double stddev_;
  uint64_t random_key_;
  T initial_slot_;
  KeySpace keys_;
  bool keeps_use_;
  NewRows new_rows_;
  bool notes_published_;
  StoredPartitions partitions_;
  int64_t rows_ = 0;
  int64_t stride_;  // elements from one row to the next
  int stride_shift_;
  uint64_t stride_inverse_;  // of its odd part, modulo 2^64

  ZeroPages pages_;          // the rows, unless there is a tier
  RowTier* tier_ = nullptr;  // null if the rows are in memory
  RowTier::Region* region_ = nullptr;
  T* first_row_ = nullptr;
  ZeroPages present_;                // one bit a row
  ZeroPages touched_;                // one bit a row; set only for existing rows
  ZeroPages unpublished_;            // likewise
  ZeroPages published_;              // whether the last publication has the row, or nothing at all
  ZeroPages groups_;                 // one bit a group of rows: whether one of them may exist
  ZeroPages records_;                // a Digest a row, or nothing at all
  ZeroPages uses_;                   // 64 bits a row, or nothing at all
  std::unique_ptr<KeySlots> slots_;  // of a keyed table, else null
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_STORE_H_
