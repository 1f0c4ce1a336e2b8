#ifndef ELASTOR_EMBEDDING_DENSE_ROW_STORE_H_
#define ELASTOR_EMBEDDING_DENSE_ROW_STORE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "embedding/row_store.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"
#include "embedding/zero_pages.h"

namespace elastor {

// Rows of a table with keys [0, rows) in one array, for the partitions a rank owns. Address space
// for all of them is taken at once, memory as rows are created.
//
// The rank's n partitions are numbered in order; key = q * 4096 + p lies at index
// q * n + number(p). So the array has no holes, and with all partitions index = key: ids sorted by
// frequency keep their hot rows together.
//
// Initial values: weights normal with the table's stddev, a pure function of (seed, table name,
// key, column); slots constant.
template <typename T>
class DenseRowStore : public RowStore<T> {
 public:
  struct Initial {
    uint64_t seed = 0;
    T slot = 0;  // value of every slot element
  };

  // partitions: ascending, those this rank owns.
  DenseRowStore(const TableSpec& table, int64_t slots, std::vector<int64_t> partitions,
                const Initial& initial);

  void FindOrCreate(std::span<const int64_t> keys, T** rows) override;
  void Find(std::span<const int64_t> keys, T** rows) const override;
  void MakeInitial(int64_t key, T* row) const override;
  T* Claim(int64_t key, bool* created) override;
  void Clear() override;
  void SetMark(int64_t key, bool marked) override;
  void ForEachBlock(
      typename RowStore<T>::Visit visit, int part, int parts,
      const std::function<void(std::span<const int64_t>, T* const*)>& fn) const override;
  void CountRows(int part, int parts, int64_t* counts) const override;
  void ForEachOfPartitions(
      const Range& partitions,
      const std::function<void(std::span<const int64_t>, T* const*)>& fn) const override;
  int64_t memory_bytes() const override { return rows_ * stride_ * sizeof(T); }

 private:
  int64_t KeyAt(int64_t index) const {
    if (numbers_.empty()) return index;
    return index / count_ * kPartitions + partitions_[index % count_];
  }
  int64_t IndexOf(int64_t key) const;
  int64_t PartitionAt(int64_t number) const {
    return numbers_.empty() ? number : partitions_[number];
  }
  T* RowAt(int64_t index) const { return static_cast<T*>(pages_.data()) + index * stride_; }

  // Constant after construction.
  RowShape shape_;
  double stddev_;
  uint64_t random_key_;
  T initial_slot_;
  int64_t table_rows_;
  std::vector<int64_t> partitions_;
  int64_t count_;                 // of partitions
  std::vector<int32_t> numbers_;  // of every partition; -1: not here. Empty when all are here
  int64_t rows_ = 0;
  int64_t stride_;  // elements from one row to the next

  ZeroPages pages_;
  ZeroPages present_;  // one bit a row
  ZeroPages marks_;    // one bit a row
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_DENSE_ROW_STORE_H_
