#include "collective/dense_reduce.h"

#include <algorithm>

#include "core/base/log.h"

namespace elastor {

Range SliceOfRank(const Range& bucket, int rank, int ranks) {
  CHECK_EQ(bucket.begin % kSliceBlock, 0);
  CHECK_GE(bucket.size(), 0);
  const int64_t blocks = (bucket.size() + kSliceBlock - 1) / kSliceBlock;
  const Range part = PartOf(rank, ranks, blocks);
  return {std::min(bucket.begin + part.begin * kSliceBlock, bucket.end),
          std::min(bucket.begin + part.end * kSliceBlock, bucket.end)};
}

void SizeSlices(const Range& bucket, int ranks, int64_t element_bytes,
                std::vector<int64_t>* bytes) {
  bytes->clear();
  for (int r = 0; r < ranks; ++r) {
    bytes->push_back(SliceOfRank(bucket, r, ranks).size() * element_bytes);
  }
}

BatchNodes::BatchNodes(int ranks, int64_t leaves, int64_t batch_rows) : begin{0} {
  for (int r = 0; r < ranks; ++r) {
    const std::vector<int64_t> nodes = NodeLeaves(r, ranks, leaves, batch_rows);
    this->leaves.insert(this->leaves.end(), nodes.begin(), nodes.end());
    begin.push_back(static_cast<int64_t>(this->leaves.size()));
  }
}

void SliceExchange::Size(const Range& bucket, const BatchNodes& nodes, int rank,
                         int64_t element_bytes) {
  const int ranks = static_cast<int>(nodes.begin.size()) - 1;
  SizeSlices(bucket, ranks, element_bytes, &send);
  receive.clear();
  for (int r = 0; r < ranks; ++r) receive.push_back(nodes.OfRank(r) * send[rank]);
  for (int64_t& bytes : send) bytes *= nodes.OfRank(rank);
}

template <typename T>
DenseReducer<T>::DenseReducer(Communicator* communicator, int64_t leaves)
    : communicator_(communicator), leaves_(leaves) {
  CHECK_LE(communicator->size(), leaves) << "more ranks than leaves";
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
  if (batch_rows != batch_rows_) {
    batch_rows_ = batch_rows;
    nodes_ = BatchNodes(ranks, leaves_, batch_rows);
  }
  CHECK_EQ(static_cast<int64_t>(nodes.size()), nodes_.OfRank(rank))
      << "canonical nodes of rank " << rank;
  for (size_t i = 0; i < nodes.size(); ++i) {
    CHECK_EQ(nodes[i].leaf, nodes_.leaves[nodes_.begin[rank] + i]);
  }
  const int64_t length = SliceOfRank(bucket, rank, ranks).size();
  received_nodes_.clear();
  if (ranks == 1) {
    for (const auto& node : nodes) received_nodes_.push_back(node.data);
  } else {
    exchange_.Size(bucket, nodes_, rank, sizeof(T));
    const size_t elements = nodes_.leaves.size() * length;
    if (receive_.size() < elements) receive_.resize(elements);
    ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseReduce, PackSlices(bucket, nodes),
                                                     exchange_.send, receive_.data(),
                                                     exchange_.receive));
    for (size_t i = 0; i < nodes_.leaves.size(); ++i) {
      received_nodes_.push_back(receive_.data() + i * length);
    }
  }
  FoldNodes<T>(nodes_.leaves, received_nodes_, length, slice);
  return OkStatus();
}

template <typename T>
Status DenseReducer<T>::Gather(const Range& bucket, T* weights) {
  const int ranks = communicator_->size();
  SizeSlices(bucket, ranks, sizeof(T), &slice_bytes_);
  const Range slice = SliceOfRank(bucket, communicator_->rank(), ranks);
  return communicator_->AllGatherV(Phase::kDenseGather, weights + slice.begin,
                                   weights + bucket.begin, slice_bytes_);
}

template class DenseReducer<float>;
template class DenseReducer<double>;

}  // namespace elastor
