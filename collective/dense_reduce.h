#ifndef ELASTOR_COLLECTIVE_DENSE_REDUCE_H_
#define ELASTOR_COLLECTIVE_DENSE_REDUCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "collective/leaf_tree.h"
#include "collective/rank_hosts.h"

namespace elastor {

// How a flat array of dense parameters is cut: every bucket (a range that becomes ready at one
// moment of the backward pass) is cut into one slice a rank, in whole blocks of kSliceBlock
// elements, so that per-block partial sums never depend on the number of ranks.
inline constexpr int64_t kSliceBlock = 1024;

// Returns the slice of `bucket` owned by `rank`. bucket.begin is a multiple of kSliceBlock.
Range SliceOfRank(const Range& bucket, int rank, int ranks);
// (*bytes)[r] = bytes of rank r's slice.
void SizeSlices(const Range& bucket, int ranks, int64_t element_bytes, std::vector<int64_t>* bytes);

// The canonical nodes of all ranks in one batch. They are the same on every rank, so that nothing
// about the nodes has to be sent.
struct BatchNodes {
  std::vector<int64_t> leaves;  // first present leaves, ascending
  std::vector<int64_t> begin;   // rank r's are [begin[r], begin[r + 1])

  BatchNodes() = default;
  // leaves: V. batch_rows: rows of the whole batch.
  BatchNodes(int ranks, int64_t leaves, int64_t batch_rows);
  int64_t OfRank(int rank) const { return begin[rank + 1] - begin[rank]; }
};

// The direct exchange of a bucket, in bytes by rank. `rank` sends each rank its slices of `rank`'s
// nodes, one after another, and receives its own slices of all ranks' nodes.
struct SliceExchange {
  std::vector<int64_t> send, receive;
  void Size(const Range& bucket, const BatchNodes& nodes, int rank, int64_t element_bytes);
};

// The nodes of every host in one batch: what its ranks' nodes become where they are added inside
// the host.
struct HostNodes {
  std::vector<std::vector<int64_t>> leaves;  // by host: the first present leaf of each, ascending
  std::vector<int> node_of;  // by node of BatchNodes: the host's node of which it is a part

  HostNodes() = default;
  HostNodes(const RankHosts& hosts, const BatchNodes& nodes, int ranks, int64_t node_leaves);
};

// The exchanges of a bucket by host (RankHosts::Gatherer), in bytes by rank. Gradients: a rank
// sends the slices of all owners to the ranks of its host that gather for them, and these send
// their sums to the owners. Weights go the other way: from the owners to the ranks that gather for
// them, which send what they have to the ranks of their host.
struct HostExchange {
  SliceExchange within, between;

  void SizeReduce(const Range& bucket, const RankHosts& hosts, const BatchNodes& nodes,
                  const HostNodes& host_nodes, int rank, int64_t element_bytes);
  void SizeGather(const Range& bucket, const RankHosts& hosts, int ranks, int rank,
                  int64_t element_bytes);
};

// Elements of the memory that a rank takes for the exchanges of the largest bucket.
struct DenseBuffers {
  int64_t send = 0, receive = 0;
};
// leaves: V. hosts: null unless sums go by host.
DenseBuffers SizeDenseBuffers(std::span<const Range> buckets, int ranks, int64_t leaves,
                              const RankHosts* hosts, int rank);

// Sums gradients over leaves and hands each rank its slice: the tree reduction by direct exchange
// (every rank sends slice s of its canonical nodes to rank s, which folds them in tree order).
// Steps: one all-to-all of N - 1 messages a rank; bytes sent by a rank: nodes * bucket * (N-1)/N
// (nodes = 1 when N divides V, at most 2 log2(V/N) otherwise). Gather: N - 1 messages, bucket *
// (N-1)/N bytes again. See README.md. Every rank makes the same calls in the same order, from one
// thread at a time; that thread needs SetCanonicalFloatingPoint.
template <typename T>
class DenseReducer {
 public:
  // leaves: V. buckets: all that come. hosts: if sums go by host; else null. communicator and hosts
  // outlive the reducer.
  DenseReducer(Communicator* communicator, int64_t leaves, std::span<const Range> buckets,
               const RankHosts* hosts = nullptr);

  // nodes: this rank's canonical nodes of the bucket (data covering the whole bucket: element i of
  // node.data is element bucket.begin + i), as NodeLeaves(rank, size, leaves, batch_rows) says.
  // slice receives the root's elements of SliceOfRank(bucket, rank, size), zero when batch_rows
  // == 0; it may be that part of one of the nodes, which are otherwise unchanged. With one rank
  // nothing is exchanged.
  Status Reduce(const Range& bucket, int64_t batch_rows,
                std::span<const typename TreeFold<T>::Node> nodes, T* slice);

  // All-gathers new weights: weights points to element 0 of the flat array; before the call this
  // rank's slice of the bucket is up to date in place; afterwards the whole bucket is.
  Status Gather(const Range& bucket, T* weights);

 private:
  // Takes the memory of exchanges, once.
  void TakeBuffers();
  // Returns the slices of all nodes one after another, by destination. One node needs no copy.
  const T* PackSlices(const Range& bucket, std::span<const typename TreeFold<T>::Node> nodes);
  Status ReduceByHost(const Range& bucket, std::span<const typename TreeFold<T>::Node> nodes,
                      T* slice);
  Status GatherByHost(const Range& bucket, T* weights);
  // Sums the gathered slices inside the host's nodes. to: [owner][node].
  void FoldGathered(const Range& bucket, T* to);

  Communicator* communicator_;
  int64_t leaves_;
  const RankHosts* hosts_;
  std::vector<std::vector<int>> gathered_;  // by rank of the host: the owners it gathers for
  int64_t batch_rows_ = -1;
  BatchNodes nodes_;  // nodes of a batch of batch_rows_ rows
  HostNodes host_nodes_;
  HostExchange by_host_;
  const DenseBuffers elements_;
  std::vector<T> send_;
  std::vector<T> receive_;
  std::vector<const T*> received_nodes_;
  SliceExchange exchange_;
  std::vector<int64_t> slice_bytes_;
};

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_DENSE_REDUCE_H_
