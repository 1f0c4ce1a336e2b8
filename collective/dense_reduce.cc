#include "collective/dense_reduce.h"

#include <algorithm>
#include <bit>

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

bool Halves(int ranks, int64_t leaves) {
  return ranks >= kLeastHalvingRanks && std::has_single_bit(static_cast<unsigned>(ranks)) &&
         leaves % ranks == 0 && std::has_single_bit(static_cast<uint64_t>(leaves / ranks));
}

HalvedBucket::HalvedBucket(const Range& bucket, int rank, int ranks) {
  // The place of a slice in the pack is its number with the bits reversed, so that each round's
  // halves lie together.
  std::vector<int64_t> begin = {0};
  for (int place = 0; place < ranks; ++place) {
    int number = 0;
    for (int bit = 1; bit < ranks; bit *= 2) number = 2 * number + ((place & bit) != 0 ? 1 : 0);
    slices.push_back(SliceOfRank(bucket, number, ranks));
    begin.push_back(begin.back() + slices.back().size());
  }
  Range places = {0, ranks};
  for (int bit = 1; bit < ranks; bit *= 2) {
    const int64_t middle = (places.begin + places.end) / 2;
    const Range low = {begin[places.begin], begin[middle]};
    const Range high = {begin[middle], begin[places.end]};
    const bool keeps_high = (rank & bit) != 0;
    rounds.push_back({rank ^ bit, keeps_high ? low : high, keeps_high ? high : low});
    (keeps_high ? places.begin : places.end) = middle;
  }
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
  if (Halves(ranks, leaves_, nodes_)) return ReduceByHalving(bucket, nodes[0].data, slice);
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
Status DenseReducer<T>::Exchange(Phase phase, int partner, const Range& sent, int64_t received,
                                 T* receive) {
  slice_bytes_.assign(communicator_->size(), 0);
  round_bytes_.assign(communicator_->size(), 0);
  slice_bytes_[partner] = sent.size() * static_cast<int64_t>(sizeof(T));
  round_bytes_[partner] = received * static_cast<int64_t>(sizeof(T));
  return communicator_->AllToAllV(phase, send_.data() + sent.begin, slice_bytes_, receive,
                                  round_bytes_);
}

template <typename T>
Status DenseReducer<T>::ReduceByHalving(const Range& bucket, const T* node, T* slice) {
  const HalvedBucket halves(bucket, communicator_->rank(), communicator_->size());
  const auto elements = static_cast<size_t>(bucket.size());
  if (send_.size() < elements) send_.resize(elements);
  if (receive_.size() < elements) receive_.resize(elements);
  T* next = send_.data();
  for (const Range& part : halves.slices) {
    const T* const begin = node + (part.begin - bucket.begin);
    next = std::copy(begin, begin + part.size(), next);
  }
  for (const HalvedBucket::Round& round : halves.rounds) {
    ELASTOR_RETURN_IF_ERROR(Exchange(Phase::kDenseReduce, round.partner, round.sent,
                                     round.kept.size(), receive_.data()));
    T* const sum = send_.data() + round.kept.begin;
    for (int64_t i = 0; i < round.kept.size(); ++i) sum[i] += receive_[i];
  }
  const Range own = halves.rounds.back().kept;
  std::copy(send_.data() + own.begin, send_.data() + own.end, slice);
  return OkStatus();
}

template <typename T>
Status DenseReducer<T>::GatherByDoubling(const Range& bucket, T* weights) {
  const HalvedBucket halves(bucket, communicator_->rank(), communicator_->size());
  const auto elements = static_cast<size_t>(bucket.size());
  if (send_.size() < elements) send_.resize(elements);
  const Range own = SliceOfRank(bucket, communicator_->rank(), communicator_->size());
  std::copy(weights + own.begin, weights + own.end, send_.data() + halves.rounds.back().kept.begin);
  for (size_t i = halves.rounds.size(); i-- > 0;) {
    const HalvedBucket::Round& round = halves.rounds[i];
    ELASTOR_RETURN_IF_ERROR(Exchange(Phase::kDenseGather, round.partner, round.kept,
                                     round.sent.size(), send_.data() + round.sent.begin));
  }
  const T* next = send_.data();
  for (const Range& part : halves.slices) {
    std::copy(next, next + part.size(), weights + part.begin);
    next += part.size();
  }
  return OkStatus();
}

template <typename T>
Status DenseReducer<T>::Gather(const Range& bucket, T* weights) {
  const int ranks = communicator_->size();
  if (Halves(ranks, leaves_)) return GatherByDoubling(bucket, weights);
  SizeSlices(bucket, ranks, sizeof(T), &slice_bytes_);
  const Range slice = SliceOfRank(bucket, communicator_->rank(), ranks);
  return communicator_->AllGatherV(Phase::kDenseGather, weights + slice.begin,
                                   weights + bucket.begin, slice_bytes_);
}

template class DenseReducer<float>;
template class DenseReducer<double>;

}  // namespace elastor
