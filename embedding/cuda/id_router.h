#ifndef ELASTOR_EMBEDDING_CUDA_ID_ROUTER_H_
#define ELASTOR_EMBEDDING_CUDA_ID_ROUTER_H_

#include <cstdint>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "core/base/leaves.h"
#include "core/base/status.h"
#include "core/cuda/runtime.h"
#include "core/cuda/sort.h"
#include "embedding/cuda/id_route.h"
#include "embedding/embedding_layout.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"

namespace elastor::cuda {

class CellTable;

// Makes IdRoutes: what elastor::IdRoute does, on one stream of the device. The host waits for
// counts, exchanges them and computes places; keys go between devices. One batch at a time.
class IdRouter {
 public:
  // All outlive the object. tables: device memory. leaves: V.
  IdRouter(const EmbeddingLayout* layout, const ShardPlan* plan, int64_t leaves,
           const TableView* tables, DeviceCommunicator* communicator, Stream* stream);

  // Thread-safe.
  void Stage(const SparseBatch& batch, PinnedIds* staged) const;

  // User error on all ranks when a rank has a bad id.
  Status Route(const SparseBatch& batch, IdRoute* route);

  const FieldView* fields() const { return fields_.data(); }

 private:
  // Unique ids of this rank's batch by owner's cell, and vectors.
  struct Lists {
    std::vector<int64_t> uniques, vectors;  // [rank * tables + table]
  };

  void MakeFormat();
  // Of `count` keys. `buffer` has their memory.
  SortKeys KeysIn(Buffer<uint64_t>* buffer, int64_t count) const;
  // By the low `bits`, with values_.
  void Sort(int64_t count, int bits, const SortKeys& keys, const SortKeys& sorted_keys,
            uint32_t* sorted_values);
  void UploadPlan();
  void UploadBatch(const SparseBatch& batch, IdRoute* route);
  void SizeRequester(IdRoute* route);
  void EnqueueRequester(IdRoute* route);
  Status WaitForCounts(IdRoute* route);
  Status BadId(const SparseBatch& batch, int64_t code, const IdRoute& route) const;
  // The lists that this rank sends, cut by cell, own ones included.
  Lists SentLists(const IdRoute& route) const;
  // Sends the counts of the lists to all owners and gets those of the lists from all requesters.
  // *failed: whether a rank had a bad id.
  Status ExchangeCounts(const Lists& sent, bool mine_failed, Lists* received, bool* failed);
  void PlaceCells(const Lists& sent, const Lists& received, IdRoute* route);
  void PlaceMessages(const Lists& sent, const Lists& received, const int64_t* unique_begin,
                     CellTable* table, CellsView* view) const;
  void PlaceGradients(const Lists& sent, const Lists& received, CellTable* table,
                      IdRoute* route) const;
  void EnqueueOwner(IdRoute* route);
  Status ExchangeKeys(IdRoute* route);
  bool HasMasks(int requester) const { return canonical_nodes_[requester].size() > 1; }

  const EmbeddingLayout* layout_;
  const ShardPlan* plan_;
  const TableView* tables_;
  DeviceCommunicator* communicator_;
  Stream* stream_;
  int rank_;
  int ranks_;
  Range owned_leaves_;
  std::vector<std::vector<Range>> canonical_nodes_;  // by rank
  KeyFormat format_;

  Buffer<FieldView> fields_;
  Buffer<int64_t> table_rows_;
  Buffer<int32_t> owners_;
  Buffer<int32_t> node_of_leaf_;

  // Scratch of one batch.
  DeviceSort sort_;
  Buffer<uint64_t> keys_;
  Buffer<uint32_t> values_;
  Event done_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ID_ROUTER_H_
