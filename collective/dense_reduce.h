#ifndef ELASTOR_COLLECTIVE_DENSE_REDUCE_H_
#define ELASTOR_COLLECTIVE_DENSE_REDUCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "collective/leaf_tree.h"

namespace elastor {

// How a flat array of dense parameters is cut: every bucket (a range that becomes ready at one
// moment of the backward pass) is cut into one slice a rank, in whole blocks of kSliceBlock
// elements, so that per-block partial sums never depend on the number of ranks.
inline constexpr int64_t kSliceBlock = 1024;

// Slice of `bucket` owned by `rank`. bucket.begin is a multiple of kSliceBlock.
Range SliceOfRank(const Range& bucket, int rank, int ranks);

// Sums gradients over leaves and hands each rank its slice: the tree reduction by direct exchange
// (every rank sends slice s of its canonical nodes to rank s, which folds them in tree order).
// Steps: one all-to-all of N - 1 messages a rank; bytes sent by a rank: nodes * bucket * (N-1)/N
// (nodes = 1 when N divides V, at most 2 log2(V/N) otherwise). Gather: N - 1 messages, bucket *
// (N-1)/N bytes again. See README.md. Every rank makes the same calls in the same order, from one
// thread at a time; that thread needs SetCanonicalFloatingPoint. Buffers grow and are kept.
template <typename T>
class DenseReducer {
 public:
  // leaves: V. communicator outlives the reducer.
  DenseReducer(Communicator* communicator, int64_t leaves);

  // nodes: this rank's canonical nodes of the bucket (data covering the whole bucket: element i of
  // node.data is element bucket.begin + i), as NodeLeaves(rank, size, leaves, batch_rows) says.
  // slice receives the root's elements of SliceOfRank(bucket, rank, size), zero when batch_rows
  // == 0; it may be that part of one of the nodes, which are otherwise unchanged. With one rank
  // nothing is exchanged.
  Status Reduce(const Range& bucket, int64_t batch_rows,
                std::span<const typename TreeFold<T>::Node> nodes, T* slice);

  // All-gathers new weights: weights points to element 0 of the flat array; this rank's slice of
  // bucket is up to date in place, afterwards the whole bucket is.
  Status Gather(const Range& bucket, T* weights);

 private:
  // Makes node_leaves_ and first_node_ those of a batch of batch_rows rows.
  void SetBatch(int64_t batch_rows);
  int64_t NodesOf(int rank) const { return first_node_[rank + 1] - first_node_[rank]; }
  // Slices of all nodes one after another, by destination. One node needs no copy.
  const T* PackSlices(const Range& bucket, std::span<const typename TreeFold<T>::Node> nodes);

  Communicator* communicator_;
  int64_t leaves_;
  int64_t batch_rows_ = -1;
  std::vector<int64_t> node_leaves_;  // of all ranks, ascending
  std::vector<int64_t> first_node_;   // rank r's are [first_node_[r], first_node_[r + 1])
  std::vector<T> send_;
  std::vector<T> receive_;
  std::vector<const T*> received_nodes_;
  std::vector<int64_t> send_bytes_;
  std::vector<int64_t> receive_bytes_;
};

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_DENSE_REDUCE_H_
