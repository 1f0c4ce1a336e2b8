#ifndef ELASTOR_EMBEDDING_CUDA_ROW_TABLES_H_
#define ELASTOR_EMBEDDING_CUDA_ROW_TABLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/cuda/runtime.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/row_cache.h"
#include "embedding/cuda/row_kernels.h"
#include "embedding/cuda/table_view.h"
#include "embedding/embedding_layout.h"
#include "embedding/row_index.h"
#include "embedding/shard_plan.h"

namespace elastor::cuda {

// The rows one rank owns, in device memory or, beyond `device_bytes`, in the host's memory behind a
// RowCache. Work goes to one stream; not thread-safe.
class RowTables {
 public:
  struct Options {
    OptimizerOptions optimizer;
    uint64_t seed = 0;
    int rank = 0;
    int64_t device_bytes = 0;  // 0: no limit
  };
  // layout, plan and stream outlive the object. With dense-equivalent Adam all rows are created.
  RowTables(const EmbeddingLayout* layout, const ShardPlan* plan, const Options& options,
            Stream* stream);

  int64_t tables() const { return static_cast<int64_t>(views_.size()); }
  const TableView& view(int64_t t) const { return views_[t]; }
  const TableView* device_views() const { return device_views_.data(); }
  bool dense() const { return options_.optimizer.kind == OptimizerKind::kDenseAdam; }
  int64_t memory_bytes() const;

  const StoredPartitions& partitions(int64_t t) const { return partitions_[t]; }

  // Sets rows[j] to the row of owned key j, which is created if it does not exist yet.
  void FindOrCreate(const OwnedKeys& owned, float** rows);
  // Sets rows[j] to the row of owned key j, or to null if there is none. Once the stream has
  // reached this point, *missing (page-locked) is the number of keys without a row. MakeForgotten
  // then makes them in *forgotten, outside the tables.
  void Find(const OwnedKeys& owned, float** rows, int32_t* missing);
  void MakeForgotten(const OwnedKeys& owned, int64_t missing, Buffer<float>* forgotten,
                     float** rows);

  // Marks the rows that owned keys name and no others. Table t's marks, a bit a row, begin at
  // marks(t).
  void MarkTouched(const OwnedKeys& owned);
  const uint32_t* marks(int64_t t) const { return marks_.data() + first_word_[t]; }

  // For reading and writing rows from the host. The present bits of table t are the words
  // [first_word(t), first_word(t + 1)) of all.
  int64_t first_word(int64_t t) const { return first_word_[t]; }
  void CopyPresent(uint32_t* words);  // to page-locked memory
  void WriteBackCache(RowCache::After after) { cache_->WriteBack(device_views(), after); }
  void Set(const RowToSet* rows, int64_t count, const float* values);  // in device memory
  void Forget();

 private:
  std::vector<bool> PlaceInHost() const;
  void AddTable(int64_t t, bool in_host);
  void CreateAll();

  const EmbeddingLayout* layout_;
  const ShardPlan* plan_;
  Options options_;
  Stream* stream_;
  std::vector<StoredPartitions> partitions_;
  std::vector<TableView> views_;
  std::vector<int64_t> first_word_;

  std::vector<Buffer<float>> device_rows_;
  std::vector<std::unique_ptr<PinnedBuffer<float>>> host_rows_;
  std::vector<Buffer<int32_t>> device_numbers_;
  std::vector<Buffer<int32_t>> device_partitions_;
  Buffer<TableView> device_views_;
  Buffer<int64_t> device_first_word_;
  Buffer<uint32_t> present_;
  Buffer<uint32_t> marks_;
  Buffer<uint32_t> list_;
  Buffer<int32_t> list_count_;
  std::unique_ptr<RowCache> cache_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ROW_TABLES_H_
