#ifndef ELASTOR_EMBEDDING_CUDA_TABLE_STATE_H_
#define ELASTOR_EMBEDDING_CUDA_TABLE_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/digest.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/row_kernels.h"
#include "embedding/cuda/row_tables.h"
#include "embedding/embedding_layout.h"
#include "embedding/grow_buffer.h"
#include "embedding/key_index.h"
#include "embedding/shard_plan.h"

namespace elastor::cuda {

// The view of RowTables for checkpoints and digests (embedding/embedding_state.h). Rows are visited
// through page-locked memory, a few MiB at a time, or where they lie if that is the host's memory;
// rows that are set are collected and sent together.
class TableState {
 public:
  // All pointers outlive the object. stream: the tables' stream.
  TableState(const EmbeddingLayout* layout, const ShardPlan* plan, int rank, RowTables* tables,
             Stream* stream, ThreadPool* pool);

  // Sends the rows that were set. Call it before rows are looked up.
  void SendRows();
  // Call it after rows may have changed.
  void RowsChanged() { current_ = false; }

  void AddToDigest(Digest* digest);
  void ForEachRow(const std::function<void(int table, int64_t key, const float* weights,
                                           const float* slots)>& fn);
  void SetRow(int table, int64_t key, const float* weights, const float* slots);
  void ForgetRows();
  std::vector<int64_t> CountRows(int table);
  void ForEachRowOf(
      int table, const Range& partitions,
      const std::function<void(std::span<const int64_t> keys, const float* const* rows)>& fn);

 private:
  using Visit = std::function<void(std::span<const int64_t> keys, const float* const* rows)>;

  // The stream and the page-locked memory with which one visitor copies rows.
  struct Carrier {
    Stream stream;
    PinnedBuffer<float> memory;
  };

  bool Owns(int table, int64_t partition) const { return plan_->Stores(table, partition, rank_); }
  bool HasPrimary(int table, int64_t key) const {
    return plan_->PrimaryRank(table, RowIndex::PartitionOf(key)) == rank_;
  }
  bool Present(int64_t t, int64_t index) const {
    return (present_[tables_->first_word(t) + index / 32] >> (index % 32)) & 1;
  }
  void SendRowsLocked();
  // Brings the present bits, and rows in the host's memory, up to date. Thread-safe.
  void BringUpToDate();
  std::unique_ptr<Carrier> TakeCarrier();
  void PutBack(std::unique_ptr<Carrier> carrier);
  // Visits rows whose primary replica this rank has, with keys / 4096 in `quotients` and partitions
  // numbered `numbers` here. Thread-safe after BringUpToDate.
  void VisitRows(int64_t t, const Range& quotients, const Range& numbers, const Visit& visit);
  void VisitPiece(int64_t t, const Range& quotients, const Range& numbers, const float* rows,
                  int64_t quotient_stride, const Visit& visit) const;

  const EmbeddingLayout* layout_;
  const ShardPlan* plan_;
  int rank_;
  RowTables* tables_;
  Stream* stream_;
  ThreadPool* pool_;

  std::mutex mutex_;  // guards all members below, except reads of the present bits
  bool current_ = false;
  Event brought_;  // recorded last when the rows were brought up to date
  PinnedBuffer<uint32_t> present_;
  std::vector<std::unique_ptr<Carrier>> carriers_;

  // Rows that were set, in the order first set, by a number over all tables.
  std::vector<int64_t> first_row_;  // by table
  KeyIndex numbers_;
  GrowBuffer<int64_t> keys_;
  PinnedBuffer<RowToSet> rows_;
  PinnedBuffer<float> values_;
  int64_t values_used_ = 0;
  bool cache_dropped_ = false;
  Buffer<RowToSet> device_rows_;
  Buffer<float> device_values_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_TABLE_STATE_H_
