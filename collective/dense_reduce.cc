#include "collective/dense_reduce.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/log.h"

namespace elastor {
namespace {

int64_t Sum(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

}  // namespace

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

HostNodes::HostNodes(const RankHosts& hosts, const BatchNodes& nodes, int ranks,
                     int64_t node_leaves)
    : leaves(hosts.hosts()) {
  const std::vector<std::vector<Range>> of_hosts = NodesOfHosts(hosts, ranks, node_leaves);
  std::vector<int> last(hosts.hosts(), -1);
  for (int r = 0; r < ranks; ++r) {
    const int host = hosts.HostOf(r);
    for (int64_t i = nodes.begin[r]; i < nodes.begin[r + 1]; ++i) {
      const int number = NumberOfNode(of_hosts[host], nodes.leaves[i]);
      if (number != last[host]) leaves[host].push_back(nodes.leaves[i]);
      last[host] = number;
      node_of.push_back(static_cast<int>(leaves[host].size()) - 1);
    }
  }
}

void HostExchange::SizeReduce(const Range& bucket, const RankHosts& hosts, const BatchNodes& nodes,
                              const HostNodes& host_nodes, int rank, int64_t element_bytes) {
  const int ranks = static_cast<int>(nodes.begin.size()) - 1;
  const auto of_host = [&](int r) {
    return static_cast<int64_t>(host_nodes.leaves[hosts.HostOf(r)].size());
  };
  SizeGather(bucket, hosts, ranks, rank, element_bytes);
  std::swap(within.send, within.receive);
  std::swap(between.send, between.receive);
  for (int r = 0; r < ranks; ++r) {
    within.send[r] *= nodes.OfRank(rank);
    within.receive[r] *= nodes.OfRank(r);
    between.send[r] *= of_host(rank);
    between.receive[r] *= of_host(r);
  }
}

void HostExchange::SizeGather(const Range& bucket, const RankHosts& hosts, int ranks, int rank,
                              int64_t element_bytes) {
  std::vector<int64_t> slices;
  SizeSlices(bucket, ranks, element_bytes, &slices);
  const int host = hosts.HostOf(rank);
  for (SliceExchange* exchange : {&within, &between}) {
    exchange->send.assign(ranks, 0);
    exchange->receive.assign(ranks, 0);
  }
  for (int r = 0; r < ranks; ++r) {
    within.receive[hosts.Gatherer(host, r)] += slices[r];
    if (hosts.Gatherer(host, r) == rank) between.receive[r] = slices[r];
    if (hosts.Gatherer(hosts.HostOf(r), rank) == r) between.send[r] = slices[rank];
  }
  for (const int mate : hosts.RanksOf(host)) within.send[mate] = within.receive[rank];
}

DenseBuffers SizeDenseBuffers(std::span<const Range> buckets, int ranks, int64_t leaves,
                              const RankHosts* hosts, int rank) {
  CHECK_LE(ranks, leaves) << "more ranks than leaves";
  if (ranks == 1) return {};
  const BatchNodes nodes(ranks, leaves, /*batch_rows=*/leaves);  // no batch has more
  const int64_t own = nodes.OfRank(rank);
  DenseBuffers most;
  const auto take = [&most](int64_t send, int64_t receive) {
    most = {std::max(most.send, send), std::max(most.receive, receive)};
  };
  if (hosts == nullptr) {
    for (const Range& bucket : buckets) {
      take(own > 1 ? own * bucket.size() : 0,
           std::ssize(nodes.leaves) * SliceOfRank(bucket, rank, ranks).size());
    }
    return most;
  }
  const HostNodes host_nodes(*hosts, nodes, ranks, leaves);
  for (const Range& bucket : buckets) {
    HostExchange exchange;
    exchange.SizeReduce(bucket, *hosts, nodes, host_nodes, rank, /*element_bytes=*/1);
    take(Sum(exchange.within.send), Sum(exchange.within.receive));
    take(Sum(exchange.between.send), Sum(exchange.between.receive));
    exchange.SizeGather(bucket, *hosts, ranks, rank, /*element_bytes=*/1);
    take(hosts->hosts() * SliceOfRank(bucket, rank, ranks).size(), exchange.within.send[rank]);
    take(Sum(exchange.within.send), bucket.size());
  }
  return most;
}

template <typename T>
DenseReducer<T>::DenseReducer(Communicator* communicator, int64_t leaves,
                              std::span<const Range> buckets, const RankHosts* hosts)
    : communicator_(communicator),
      leaves_(leaves),
      hosts_(hosts),
      elements_(
          SizeDenseBuffers(buckets, communicator->size(), leaves, hosts, communicator->rank())) {
  if (hosts == nullptr) return;
  const int host = hosts->HostOf(communicator->rank());
  for (const int mate : hosts->RanksOf(host)) {
    std::vector<int>& owners = gathered_.emplace_back();
    for (int r = 0; r < communicator->size(); ++r) {
      if (hosts->Gatherer(host, r) == mate) owners.push_back(r);
    }
  }
}

template <typename T>
void DenseReducer<T>::TakeBuffers() {
  send_.resize(elements_.send);
  receive_.resize(elements_.receive);
}

template <typename T>
const T* DenseReducer<T>::PackSlices(const Range& bucket,
                                     std::span<const typename TreeFold<T>::Node> nodes) {
  if (nodes.empty()) return nullptr;
  if (nodes.size() == 1) return nodes[0].data;
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
    if (hosts_ != nullptr) host_nodes_ = HostNodes(*hosts_, nodes_, ranks, leaves_);
  }
  CHECK_EQ(static_cast<int64_t>(nodes.size()), nodes_.OfRank(rank))
      << "canonical nodes of rank " << rank;
  for (size_t i = 0; i < nodes.size(); ++i) {
    CHECK_EQ(nodes[i].leaf, nodes_.leaves[nodes_.begin[rank] + i]);
  }
  TakeBuffers();
  if (hosts_ != nullptr) return ReduceByHost(bucket, nodes, slice);
  const int64_t length = SliceOfRank(bucket, rank, ranks).size();
  received_nodes_.clear();
  if (ranks == 1) {
    for (const auto& node : nodes) received_nodes_.push_back(node.data);
  } else {
    exchange_.Size(bucket, nodes_, rank, sizeof(T));
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
  if (hosts_ != nullptr) return GatherByHost(bucket, weights);
  const int ranks = communicator_->size();
  SizeSlices(bucket, ranks, sizeof(T), &slice_bytes_);
  const Range slice = SliceOfRank(bucket, communicator_->rank(), ranks);
  return communicator_->AllGatherV(Phase::kDenseGather, weights + slice.begin,
                                   weights + bucket.begin, slice_bytes_);
}

template <typename T>
Status DenseReducer<T>::ReduceByHost(const Range& bucket,
                                     std::span<const typename TreeFold<T>::Node> nodes, T* slice) {
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  by_host_.SizeReduce(bucket, *hosts_, nodes_, host_nodes_, rank, sizeof(T));
  const SliceExchange& within = by_host_.within;
  const SliceExchange& between = by_host_.between;
  T* next = send_.data();
  for (const std::vector<int>& owners : gathered_) {
    for (const int owner : owners) {
      const Range part = SliceOfRank(bucket, owner, ranks);
      for (const auto& node : nodes) {
        next = std::copy_n(node.data + (part.begin - bucket.begin), part.size(), next);
      }
    }
  }
  ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseReduce, send_.data(), within.send,
                                                   receive_.data(), within.receive));
  FoldGathered(bucket, send_.data());
  ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseReduce, send_.data(), between.send,
                                                   receive_.data(), between.receive));

  // The nodes of all hosts, by the ranks that sent them; sorted where hosts lie between each other.
  const int64_t length = SliceOfRank(bucket, rank, ranks).size();
  std::vector<std::pair<int64_t, const T*>> received;
  const T* from = receive_.data();
  for (int r = 0; r < ranks; ++r) {
    if (hosts_->Gatherer(hosts_->HostOf(r), rank) != r) continue;
    for (const int64_t leaf : host_nodes_.leaves[hosts_->HostOf(r)]) {
      received.emplace_back(leaf, from);
      from += length;
    }
  }
  std::ranges::sort(received);
  std::vector<int64_t> leaves;
  received_nodes_.clear();
  for (const auto& [leaf, data] : received) {
    leaves.push_back(leaf);
    received_nodes_.push_back(data);
  }
  FoldNodes<T>(leaves, received_nodes_, length, slice);
  return OkStatus();
}

template <typename T>
void DenseReducer<T>::FoldGathered(const Range& bucket, T* to) {
  const int rank = communicator_->rank();
  const int host = hosts_->HostOf(rank);
  const std::span<const int> mates = hosts_->RanksOf(host);
  const auto own = std::ranges::find(mates, rank) - mates.begin();
  std::vector<const T*> next;  // by mate: the first vector that has not been read
  const T* from = receive_.data();
  for (const int mate : mates) {
    next.push_back(from);
    from += by_host_.within.receive[mate] / static_cast<int64_t>(sizeof(T));
  }
  for (const int owner : gathered_[own]) {
    const int64_t length = SliceOfRank(bucket, owner, communicator_->size()).size();
    std::vector<int64_t> leaves;
    received_nodes_.clear();
    int node = 0;
    const auto fold = [&] {
      if (leaves.empty()) return;
      FoldNodes<T>(leaves, received_nodes_, length, to);
      to += length;
      leaves.clear();
      received_nodes_.clear();
    };
    for (size_t m = 0; m < mates.size(); ++m) {
      for (int64_t i = nodes_.begin[mates[m]]; i < nodes_.begin[mates[m] + 1]; ++i) {
        if (host_nodes_.node_of[i] != node) fold();
        node = host_nodes_.node_of[i];
        leaves.push_back(nodes_.leaves[i]);
        received_nodes_.push_back(next[m]);
        next[m] += length;
      }
    }
    fold();
  }
}

template <typename T>
Status DenseReducer<T>::GatherByHost(const Range& bucket, T* weights) {
  TakeBuffers();
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  by_host_.SizeGather(bucket, *hosts_, ranks, rank, sizeof(T));
  const SliceExchange& within = by_host_.within;
  const SliceExchange& between = by_host_.between;
  const Range own = SliceOfRank(bucket, rank, ranks);
  const auto gathered = within.send[rank] / static_cast<int64_t>(sizeof(T));
  T* next = send_.data();
  for (int host = 0; host < hosts_->hosts(); ++host) {
    next = std::copy_n(weights + own.begin, own.size(), next);
  }
  ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseGather, send_.data(), between.send,
                                                   receive_.data(), between.receive));
  next = send_.data();
  for (size_t m = 0; m < gathered_.size(); ++m) {
    next = std::copy_n(receive_.data(), gathered, next);
  }
  ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kDenseGather, send_.data(), within.send,
                                                   receive_.data(), within.receive));
  const T* from = receive_.data();
  for (const std::vector<int>& owners : gathered_) {
    for (const int owner : owners) {
      const Range part = SliceOfRank(bucket, owner, ranks);
      std::copy_n(from, part.size(), weights + part.begin);
      from += part.size();
    }
  }
  return OkStatus();
}

template class DenseReducer<float>;
template class DenseReducer<double>;

}  // namespace elastor
