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

// Makes IdRoutes on one stream of the device, as elastor::IdRoute does on the host. The host waits
// for counts, exchanges them and computes places; keys go between devices. One batch at a time.
class IdRouter {
 public:
  // All pointers outlive the object. tables: device memory. leaves: V.
  IdRouter(const EmbeddingLayout* layout, const ShardPlan* plan, int64_t leaves,
           const TableView* tables, DeviceCommunicator* communicator, Stream* stream);

  // Copies the batch's ids to page-locked memory. Thread-safe.
  void Stage(const SparseBatch& batch, PinnedIds* staged) const;

  // Routes the batch's ids. User error on all ranks if any rank has an id outside its table.
  Status Route(const SparseBatch& batch, IdRoute* route);

  const FieldView* fields() const { return fields_.data(); }

 private:
  // The numbers of unique ids and of gradient vectors of a list, by cell.
  struct Lists {
    std::vector<int64_t> uniques, vectors;  // [rank * tables + table]
  };

  void MakeFormat();
  // Returns room for `count` keys in `buffer`.
  SortKeys KeysIn(Buffer<uint64_t>* buffer, int64_t count) const;
  // Sorts keys by their low `bits`, carrying values_ along.
  void Sort(int64_t count, int bits, const SortKeys& keys, const SortKeys& sorted_keys,
            uint32_t* sorted_values);
  void UploadPlan();
  void UploadBatch(const SparseBatch& batch, IdRoute* route);
  void SizeRequester(IdRoute* route);
  void EnqueueRequester(IdRoute* route);
  Status WaitForCounts(IdRoute* route);
  Status BadId(const SparseBatch& batch, int64_t code, const IdRoute& route) const;
  // Returns the sizes of the lists that this rank sends, by cell, including those to itself.
  Lists SentLists(const IdRoute& route) const;
  // Sends the lists' counts to all owners and receives the counts of all requesters' lists.
  // *failed: whether any rank had a bad id.
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

  // Scratch memory, used during one batch.
  DeviceSort sort_;
  Buffer<uint64_t> keys_;
  Buffer<uint32_t> values_;
  Event done_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ID_ROUTER_H_
