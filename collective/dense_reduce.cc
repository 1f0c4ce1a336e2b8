#include "collective/dense_reduce.h"

#include <algorithm>

#include "glog/logging.h"

namespace elastor {

Range SliceOfRank(const Range& bucket, int rank, int ranks) {
  CHECK_EQ(bucket.begin % kSliceBlock, 0);
  CHECK_GE(bucket.size(), 0);
  const int64_t blocks = (bucket.size() + kSliceBlock - 1) / kSliceBlock;
  const Range part = PartOf(rank, ranks, blocks);
  return {std::min(bucket.begin + part.begin * kSliceBlock, bucket.end),
          std::min(bucket.begin + part.end * kSliceBlock, bucket.end)};
}

template <typename T>
DenseReducer<T>::DenseReducer(Communicator* communicator, int64_t leaves)
    : communicator_(communicator), leaves_(leaves) {
  CHECK_LE(communicator->size(), leaves) << "more ranks than leaves";
}

template <typename T>
void DenseReducer<T>::SetBatch(int64_t batch_rows) {
  if (batch_rows == batch_rows_) return;
  batch_rows_ = batch_rows;
  const int ranks = communicator_->size();
  node_leaves_.clear();
  first_node_.assign(1, 0);
  for (int r = 0; r < ranks; ++r) {
    const std::vector<int64_t> nodes = NodeLeaves(r, ranks, leaves_, batch_rows);
    node_leaves_.insert(node_leaves_.end(), nodes.begin(), nodes.end());
    first_node_.push_back(static_cast<int64_t>(node_leaves_.size()));
  }
}

template <typename T>
const T* DenseReducer<T>::PackSlices(const Range& bucket,
                                     std::span<const typename TreeFold<T>::Node> nodes) {
  if (nodes.empty()) return nullptr;
  if (nodes.size() == 1) return nodes[0].data;
  const size_t elements = nodes.size() * bucket.size();
  if (send_.size() < elements) send_.resize(elements);
  T* next = send_.data();
  for (int r = 0; r < communicator_->size(); ++r) {
    const Range slice = SliceOfRank(bucket, r, communicator_->size());
    for (const auto& node : nodes) {
      const T* begin = node.data + (slice.begin - bucket.begin);
      next = std::copy(begin, begin + slice.size(), next);
    }
  }
  return send_.data();
}

template <typename T>
Status DenseReducer<T>::Reduce(const Range& bucket, int64_t batch_rows,
                               std::span<const typename TreeFold<T>::Node> nodes, T* slice) {
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  SetBatch(batch_rows);
  CHECK_EQ(static_cast<int64_t>(nodes.size()), NodesOf(rank)) << "canonical nodes of rank " << rank;
  for (size_t i = 0; i < nodes.size(); ++i) {
    CHECK_EQ(nodes[i].leaf, node_leaves_[first_node_[rank] + i]);
  }
  const int64_t length = SliceOfRank(bucket, rank, ranks).size();
  received_nodes_.clear();
  if (ranks == 1) {
    for (const auto& node : nodes) received_nodes_.push_back(node.data);
  } else {
    send_bytes_.clear();
    receive_bytes_.clear();
    for (int r = 0; r < ranks; ++r) {
      send_bytes_.push_back(NodesOf(rank) * SliceOfRank(bucket, r, ranks).size() * sizeof(T));
      receive_bytes_.push_back(NodesOf(r) * length * sizeof(T));
    }
    const size_t elements = node_leaves_.size() * length;
    if (receive_.size() < elements) receive_.resize(elements);
    ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseReduce, PackSlices(bucket, nodes),
                                                     send_bytes_, receive_.data(), receive_bytes_));
    for (size_t i = 0; i < node_leaves_.size(); ++i) {
      received_nodes_.push_back(receive_.data() + i * length);
    }
  }
  FoldNodes<T>(node_leaves_, received_nodes_, length, slice);
  return OkStatus();
}

template <typename T>
Status DenseReducer<T>::Gather(const Range& bucket, T* weights) {
  const int ranks = communicator_->size();
  send_bytes_.clear();
  for (int r = 0; r < ranks; ++r) {
    send_bytes_.push_back(SliceOfRank(bucket, r, ranks).size() * sizeof(T));
  }
  const Range slice = SliceOfRank(bucket, communicator_->rank(), ranks);
  return communicator_->AllGatherV(Phase::kDenseGather, weights + slice.begin,
                                   weights + bucket.begin, send_bytes_);
}

template class DenseReducer<float>;
template class DenseReducer<double>;

}  // namespace elastor
