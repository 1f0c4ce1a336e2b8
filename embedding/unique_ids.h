#ifndef ELASTOR_EMBEDDING_UNIQUE_IDS_H_
#define ELASTOR_EMBEDDING_UNIQUE_IDS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/leaves.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "embedding/embedding_layout.h"
#include "embedding/grow_buffer.h"
#include "embedding/key_index.h"
#include "embedding/table.h"

namespace elastor {

// Where an id occurs: the gradient of its bag in [row][feature], and the leaf of the row.
struct Occurrence {
  uint32_t offset;  // elements
  uint32_t leaf;
};

// Valid entries after the last occurrence, so that a loop may look ahead.
inline constexpr int64_t kOccurrencePadding = 12;

// The different (table, key) pairs of a batch, numbered table after table in the order first seen,
// and the occurrences of each in order (row, field, position).
// Internally ids are put in *columns*, one a table, each in that order.
class UniqueIds {
 public:
  explicit UniqueIds(const EmbeddingLayout* layout);  // layout outlives the object

  // Finds a batch's unique ids. User error naming field and id if an id is outside its table; then
  // the object is empty. The threads of `pool` share the tables; null: the calling thread alone.
  Status Build(const SparseBatch& batch, ThreadPool* pool);
  void Clear();

  int64_t size() const { return table_begin_.back(); }
  int64_t rows() const { return rows_; }
  const std::vector<int64_t>& leaf_offsets() const { return leaf_offsets_; }
  Range OfTable(int64_t t) const { return {table_begin_[t], table_begin_[t + 1]}; }
  const int64_t* keys() const { return keys_.data(); }

  int64_t occurrences() const { return occurrence_begin_[size()]; }
  // Occurrences of unique id u are [occurrence_begin()[u], occurrence_begin()[u + 1]).
  const uint32_t* occurrence_begin() const { return occurrence_begin_.data(); }
  std::span<const Occurrence> OccurrencesOf(int64_t u) const {
    return {occurrences_.data() + occurrence_begin_[u],
            occurrences_.data() + occurrence_begin_[u + 1]};
  }

  // Returns the first unique id whose occurrences begin at `occurrence` or behind it.
  int64_t IdAt(int64_t occurrence) const {
    const uint32_t* begin = occurrence_begin();
    return std::lower_bound(begin, begin + size(), occurrence) - begin;
  }

  // Returns the unique ids of a bag, in order.
  std::span<const uint32_t> Bag(int64_t row, int64_t field) const {
    if (single_id_bags_) {
      return {unique_of_.data() + column_of_field_[field] + row * step_of_field_[field], 1};
    }
    const BagRange& bag = bags_[field * rows_ + row];
    return {unique_of_.data() + bag.begin, bag.length};
  }
  bool single_id_bags() const { return single_id_bags_; }

 private:
  struct BagRange {
    uint32_t begin;
    uint32_t length;
  };

  template <typename Work>
  void ForTables(ThreadPool* pool, const Work& work);
  void SizeColumns(const SparseBatch& batch);
  // The three steps of a table. FillColumn returns whether all ids are inside the table.
  bool FillColumn(const SparseBatch& batch, int64_t t);
  void NumberKeys(int64_t t, KeyIndex* index);
  void ListOccurrences(const SparseBatch& batch, int64_t t);
  Status FirstBadId(const SparseBatch& batch) const;

  const EmbeddingLayout* layout_;
  bool single_id_bags_ = true;
  int64_t rows_ = 0;
  std::vector<int64_t> leaf_offsets_;

  std::vector<int64_t> column_begin_;     // by table, and the end
  std::vector<int64_t> column_of_field_;  // single-id bags: position of row 0, and per row
  std::vector<int64_t> step_of_field_;
  GrowBuffer<BagRange> bags_;  // [field][row], positions in the columns, unless single_id_bags_
  GrowBuffer<int64_t> column_ids_;
  GrowBuffer<uint32_t> unique_of_;  // by position in the columns

  std::vector<KeyIndex> indexes_;  // by thread
  // Keys and counts of a table's unique ids, from the begin of its column on, until all tables have
  // been numbered.
  GrowBuffer<int64_t> column_keys_;
  GrowBuffer<uint32_t> column_counts_;  // number of occurrences

  std::vector<int64_t> table_begin_;
  GrowBuffer<int64_t> keys_;
  GrowBuffer<uint32_t> occurrence_begin_;
  GrowBuffer<Occurrence> occurrences_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_UNIQUE_IDS_H_
