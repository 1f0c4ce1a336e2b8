#include "embedding/id_route.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/base/log.h"

namespace elastor {
namespace {

constexpr int64_t kWordBytes = sizeof(int64_t);
constexpr int64_t kFailed = -1;  // instead of a message's size: the sender's batch is bad

int64_t Sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

std::vector<int64_t> InBytes(const std::vector<int64_t>& words) {
  std::vector<int64_t> bytes(words);
  for (int64_t& value : bytes) value *= kWordBytes;
  return bytes;
}

}  // namespace

IdRoute::IdRoute(const EmbeddingLayout* layout, const ShardPlan* plan, int rank, int64_t leaves,
                 bool changes_gradients, const RankHosts* hosts)
    : layout_(layout),
      plan_(plan),
      rank_(rank),
      ranks_(plan->ranks()),
      leaves_(leaves),
      owned_leaves_(LeavesOfRank(rank, ranks_, leaves)),
      changes_gradients_(changes_gradients),
      hosts_(hosts),
      list_of_(ranks_),
      sends_(ranks_, true),
      canonical_nodes_(NodesOfRanks(ranks_, leaves)),
      ids_(layout) {
  for (int r = 0; r < ranks_; ++r) {
    list_of_[r] = hosts == nullptr ? r : hosts->Gatherer(hosts->HostOf(rank), r);
    if (hosts != nullptr) sends_[r] = hosts->HostOf(r) == hosts->HostOf(rank);
  }
  receives_ = sends_;
  for (Lists* lists : {&sent_, &received_}) {
    lists->tables = layout->tables();
    lists->begin.assign(ranks_ * layout->tables() + 1, 0);
  }
  owned_begin_.assign(layout->tables() + 1, 0);
  for (int64_t t = 0; t < layout->tables(); ++t) has_times_ |= layout->table(t).rules.by_time();
}

IdRoute::IdRoute(const IdRoute* within)
    : IdRoute(within->layout_, within->plan_, within->rank_, within->leaves_,
              within->changes_gradients_) {
  hosts_ = within->hosts_;
  within_ = within;
  const int host = hosts_->HostOf(rank_);
  const std::vector<std::vector<Range>> of_hosts = NodesOfHosts(*hosts_, ranks_, leaves_);
  for (int r = 0; r < ranks_; ++r) {
    sends_[r] = hosts_->Gatherer(host, r) == rank_;
    receives_[r] = hosts_->Gatherer(hosts_->HostOf(r), rank_) == r;
    canonical_nodes_[r] = of_hosts[hosts_->HostOf(r)];
  }
  int64_t last = -1;
  for (int r = 0; r < ranks_; ++r) {
    if (!receives_[r]) continue;
    sorts_nodes_ |= canonical_nodes_[r].front().begin < last;
    last = canonical_nodes_[r].back().begin;
  }
}

Status IdRoute::Route(const SparseBatch& batch, Communicator* communicator, ThreadPool* pool) {
  CHECK_EQ(batch.first_leaf, owned_leaves_.begin);
  CHECK_EQ(static_cast<int64_t>(batch.leaf_offsets.size()), owned_leaves_.size() + 1);
  const Status mine = ids_.Build(batch, pool);
  own_latest_ = batch.latest;
  return ExchangeLists(mine, communicator, pool);
}

Status IdRoute::RouteGathered(Communicator* communicator) {
  own_latest_ = within_->latest_;
  return ExchangeLists(within_->batch_status_, communicator, /*pool=*/nullptr);
}

Status IdRoute::ExchangeLists(const Status& mine, Communicator* communicator, ThreadPool* pool) {
  const bool leg_within = hosts_ != nullptr && within_ == nullptr;
  const bool failed = !mine.ok() || (within_ != nullptr && within_->AnybodyFailed());
  if (!failed) {
    MakeLists();
    MakeNodeMasks();
  }
  batch_status_ = mine;
  send_words_.assign(ranks_, 0);
  receive_words_.assign(ranks_, 0);
  for (int r = 0; r < ranks_; ++r) {
    if (sends_[r]) send_words_[r] = failed ? kFailed : MessageWords(r);
  }
  ELASTOR_RETURN_IF_ERROR(ExchangeSizes(communicator));
  if (AnybodyFailed()) {
    // Every rank sees it at the end of the way: all stop there together.
    if (!leg_within) return AgreeOnStatus(*communicator, mine);
    const std::vector<int64_t> nothing(ranks_, 0);
    return communicator->AllToAllV(Phase::kIdExchange, nullptr, nothing, nullptr, nothing);
  }
  ELASTOR_RETURN_IF_ERROR(ExchangeMessages(communicator));
  ReadLists();
  NumberOwnedKeys();
  PlaceVectors();
  if (alone()) {
    PlaceOwnGradients(pool);
  } else {
    PlaceSentGradients();
    PlaceReceivedGradients();
  }
  return OkStatus();
}

bool IdRoute::AnybodyFailed() const {
  return std::count(receive_words_.begin(), receive_words_.end(), kFailed) > 0;
}

std::vector<int64_t> IdRoute::Lists::counts() const {
  std::vector<int64_t> counts(begin.size() - 1);
  for (size_t k = 0; k < counts.size(); ++k) counts[k] = begin[k + 1] - begin[k];
  return counts;
}

void IdRoute::MakeLists() {
  const int64_t tables = layout_->tables();
  const int64_t* keys = this->keys();
  owner_of_.Resize(listed_size());
  std::fill(sent_.begin.begin(), sent_.begin.end(), 0);
  const auto count = [&](int64_t rank, int64_t t) -> int64_t& {
    return sent_.begin[rank * tables + t + 1];
  };
  // Whether every rank owns all keys of a table.
  const auto all_own = [&](int64_t t) { return alone() || plan_->replicated(static_cast<int>(t)); };
  for (int64_t t = 0; t < tables; ++t) {
    const Range unique = OfTable(t);
    if (all_own(t)) {
      for (int r = 0; r < ranks_; ++r) count(r, t) = sends_[r] ? unique.size() : 0;
      continue;
    }
    const KeySpace key_space = layout_->table(t).keys();
    for (int64_t u = unique.begin; u < unique.end; ++u) {
      owner_of_[u] = list_of_[plan_->Owner(static_cast<int>(t), key_space.PartitionOf(keys[u]))];
      ++count(owner_of_[u], t);
    }
  }
  std::partial_sum(sent_.begin.begin(), sent_.begin.end(), sent_.begin.begin());

  sent_items_.Resize(sent_.begin.back());
  std::vector<uint32_t*> cursor(ranks_);
  for (int64_t t = 0; t < tables; ++t) {
    const Range unique = OfTable(t);
    for (int r = 0; r < ranks_; ++r) {
      cursor[r] = sent_items_.data() + sent_.begin[r * tables + t];
      if (all_own(t) && sends_[r]) {
        std::iota(cursor[r], cursor[r] + unique.size(), static_cast<uint32_t>(unique.begin));
      }
    }
    if (all_own(t)) continue;
    for (int64_t u = unique.begin; u < unique.end; ++u) {
      *cursor[owner_of_[u]]++ = static_cast<uint32_t>(u);
    }
  }
}

void IdRoute::MakeNodeMasks() {
  if (!HasMasks(rank_)) return;
  uint64_t* masks = node_masks_.Resize(listed_size());
  if (within_ != nullptr) {
    for (int64_t u = 0; u < listed_size(); ++u) {
      masks[u] = 0;
      for (const Node& node : within_->NodesOf(u)) {
        masks[u] |= uint64_t{1} << NumberOfNode(nodes(), node.leaf);
      }
    }
    return;
  }
  const std::vector<int32_t> node_of_leaf = NodeOfLeaf(nodes());
  for (int64_t u = 0; u < ids_.size(); ++u) {
    masks[u] = 0;
    for (const Occurrence& occurrence : ids_.OccurrencesOf(u)) {
      masks[u] |= uint64_t{1} << node_of_leaf[occurrence.leaf - owned_leaves_.begin];
    }
  }
}

Status IdRoute::ExchangeSizes(Communicator* communicator) {
  if (hosts_ == nullptr) {
    return communicator->AllToAll(Phase::kIdExchange, send_words_.data(), receive_words_.data(),
                                  kWordBytes);
  }
  std::vector<int64_t> send, receive, send_bytes(ranks_, 0), receive_bytes(ranks_, 0);
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    if (sends_[r]) {
      send.push_back(send_words_[r]);
      send_bytes[r] = kWordBytes;
    }
    if (receives_[r]) {
      receive.push_back(0);
      receive_bytes[r] = kWordBytes;
    }
  }
  ELASTOR_RETURN_IF_ERROR(communicator->AllToAllV(Phase::kIdExchange, send.data(), send_bytes,
                                                  receive.data(), receive_bytes));
  auto next = receive.begin();
  for (int r = 0; r < ranks_; ++r) {
    if (receives_[r]) receive_words_[r] = r == rank_ ? send_words_[r] : *next++;
  }
  return OkStatus();
}

Status IdRoute::ExchangeMessages(Communicator* communicator) {
  const int64_t received_at = WriteMessages();
  send_words_[rank_] = 0;
  receive_words_[rank_] = 0;
  return communicator->AllToAllV(Phase::kIdExchange, words_.data(), InBytes(send_words_),
                                 words_.data() + received_at, InBytes(receive_words_));
}

int64_t IdRoute::WriteMessages() {
  // Sizes of the kept message are in both lists here.
  const int64_t kept = send_words_[rank_];
  const int64_t sent = Sum(send_words_) - kept;
  words_.Resize(sent + Sum(receive_words_));
  message_begin_.assign(ranks_, 0);
  int64_t send_at = 0;
  int64_t receive_at = sent + kept;
  for (int r = 0; r < ranks_; ++r) {
    const int64_t at = r == rank_ ? sent : send_at;
    if (r == rank_) {
      message_begin_[r] = sent;
    } else {
      send_at += send_words_[r];
      message_begin_[r] = receive_at;
      receive_at += receive_words_[r];
    }
    if (sends_[r]) WriteMessage(r, words_.data() + at);
  }
  return sent + kept;
}

void IdRoute::WriteMessage(int r, int64_t* word) const {
  for (int64_t t = 0; t < layout_->tables(); ++t) *word++ = sent_.count(r, t);
  if (has_times_) *word++ = own_latest_;
  const std::span<const uint32_t> list(sent_items_.data() + sent_.begin[r * sent_.tables],
                                       sent_.OfRank(r));
  for (uint32_t u : list) *word++ = keys()[u];
  if (HasMasks(rank_)) {
    for (uint32_t u : list) *word++ = static_cast<int64_t>(node_masks_[u]);
  }
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    if (!Counts(t)) continue;
    const std::span<const uint32_t> ids = Sent(r, t);
    for (size_t i = 0; i < ids.size(); i += 2) {
      const auto count = [&](size_t at) -> uint64_t {
        return at < ids.size() ? OccurrencesOf(ids[at]) : 0;
      };
      *word++ = static_cast<int64_t>(count(i) | count(i + 1) << 32);
    }
  }
}

int64_t IdRoute::MessageWords(int rank) const {
  int64_t words = HeaderWords() + sent_.OfRank(rank) * (HasMasks(rank_) ? 2 : 1);
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    if (Counts(t)) words += CountWords(sent_.count(rank, t));
  }
  return words;
}

const int64_t* IdRoute::CountsFrom(int requester, int64_t table) const {
  const int64_t* at = MessageFrom(requester) + HeaderWords() +
                      received_.OfRank(requester) * (HasMasks(requester) ? 2 : 1);
  for (int64_t t = 0; t < table; ++t) {
    if (Counts(t)) at += CountWords(received_.count(requester, t));
  }
  return at;
}

void IdRoute::ReadLists() {
  const int64_t tables = layout_->tables();
  int64_t total = 0;
  latest_ = 0;
  for (int requester = 0; requester < ranks_; ++requester) {
    const bool comes = receives_[requester];
    if (has_times_ && comes) latest_ = std::max(latest_, MessageFrom(requester)[tables]);
    for (int64_t t = 0; t < tables; ++t) {
      received_.begin[requester * tables + t] = total;
      if (comes) total += MessageFrom(requester)[t];
    }
  }
  received_.begin.back() = total;
}

void IdRoute::NumberOwnedKeys() {
  const int64_t tables = layout_->tables();
  const int64_t total = received_.begin.back();
  received_items_.Resize(total);
  owned_keys_.Resize(total);
  owned_counts_.Resize(total);
  for (int64_t t = 0; t < tables; ++t) {
    const int64_t first = owned_begin_[t];
    int64_t expected = 0;
    for (int requester = 0; requester < ranks_; ++requester)
      expected += received_.count(requester, t);
    if (ranks_ > 1) index_.Reset(expected, owned_keys_.data() + first);
    if (Counts(t)) std::fill_n(owned_counts_.data() + first, expected, 0);
    for (int requester = 0; requester < ranks_; ++requester) {
      const int64_t begin = received_.begin[requester * tables + t];
      const int64_t in_list = begin - received_.begin[requester * tables];
      const int64_t* keys = MessageFrom(requester) + HeaderWords() + in_list;
      uint32_t* number = received_items_.data() + begin;
      const int64_t count = received_.count(requester, t);
      if (ranks_ == 1) {  // one list: its keys are different already
        std::copy_n(keys, expected, owned_keys_.data() + first);
        std::iota(number, number + expected, static_cast<uint32_t>(first));
      } else {
        index_.Number({keys, static_cast<size_t>(count)}, number);
        for (int64_t i = 0; i < count; ++i) number[i] += static_cast<uint32_t>(first);
      }
      if (!Counts(t)) continue;
      const int64_t* const counts = CountsFrom(requester, t);
      for (int64_t i = 0; i < count; ++i) {
        owned_counts_[number[i]] += static_cast<uint32_t>(counts[i / 2] >> (i % 2 * 32));
      }
    }
    owned_begin_[t + 1] = first + (ranks_ == 1 ? expected : index_.size());
  }
}

StatusOr<RouteDemand> IdRoute::Count(const SparseBatch& batch, ThreadPool* pool) {
  ELASTOR_RETURN_IF_ERROR(ids_.Build(batch, pool));
  MakeLists();
  MakeNodeMasks();
  return Demand();
}

void IdRoute::Gather(std::span<IdRoute* const> from) {
  message_begin_.assign(ranks_, 0);
  int64_t words = 0;
  for (const IdRoute* requester : from) {
    message_begin_[requester->rank_] = words;
    words += requester->MessageWords(rank_);
  }
  words_.Resize(words);
  for (const IdRoute* requester : from) {
    requester->WriteMessage(rank_, words_.data() + message_begin_[requester->rank_]);
  }
  ReadLists();
  NumberOwnedKeys();
  PlaceVectors();
  PlaceReceivedGradients();
}

RouteDemand IdRoute::CountGathered() {
  MakeLists();
  MakeNodeMasks();
  return Demand();
}

RouteDemand IdRoute::Demand() const {
  const std::vector<int64_t> keys = sent_.counts();
  const std::vector<int64_t> none(keys.size(), 0);
  RouteDemand demand;
  for (int r = 0; r < ranks_; ++r) {
    demand.keys.push_back(sent_.OfRank(r));
    demand.words.push_back(sends_[r] ? MessageWords(r) : 0);
  }
  demand.rows = PlaceRows(*layout_, *plan_, rank_, none, keys).exchange;
  demand.gradients = PlaceGradients(*layout_, *plan_, rank_, SentVectors(), none).exchange;
  demand.unique_ids = listed_size();
  demand.occurrences = within_ == nullptr ? ids_.occurrences() : 0;
  return demand;
}

std::vector<int64_t> IdRoute::SentVectors() const {
  std::vector<int64_t> sent = sent_.counts();
  if (!HasMasks(rank_)) return sent;
  for (size_t k = 0; k < sent.size(); ++k) {
    sent[k] = 0;
    for (const uint32_t u : Sent(static_cast<int>(k / sent_.tables), k % sent_.tables)) {
      sent[k] += CountNodes(u);
    }
  }
  return sent;
}

void IdRoute::PlaceVectors() {
  rows_ = PlaceRows(*layout_, *plan_, rank_, received_.counts(), sent_.counts());
  const int64_t tables = layout_->tables();
  std::vector<int64_t> received(ranks_ * tables, 0);
  for (int64_t k = 0; k < ranks_ * tables; ++k) {
    const int r = static_cast<int>(k / tables);
    if (HasMasks(r)) {
      for (int64_t i = received_.begin[k]; i < received_.begin[k + 1]; ++i) {
        received[k] += std::popcount(MaskOf(r, i));
      }
    } else {
      received[k] = received_.begin[k + 1] - received_.begin[k];
    }
  }
  gradients_ = PlaceGradients(*layout_, *plan_, rank_, SentVectors(), received);
  constexpr int64_t kAlignment = 16;  // elements
  bag_gradients_ = (gradients_.exchange.total() + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t IdRoute::MaskOf(int requester, int64_t i) const {
  if (!HasMasks(requester)) return 1;
  const int64_t in_list = i - received_.begin[requester * received_.tables];
  const int64_t keys = received_.OfRank(requester);
  return static_cast<uint64_t>(MessageFrom(requester)[HeaderWords() + keys + in_list]);
}

void IdRoute::PlaceSentGradients() {
  gradient_offset_.Resize(listed_size());
  for (int r = 0; r < ranks_; ++r) {
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      if (r != rank_ && plan_->replicated(t)) continue;
      int64_t offset = gradients_.sent[r * layout_->tables() + t];
      for (const uint32_t u : Sent(r, t)) {
        gradient_offset_[u] = offset;
        offset += CountNodes(u) * layout_->width(t);
      }
    }
  }
}

// Places the gradients in a job of one rank, which owns all nodes. A bag's gradient that several
// ids share may be read in place, but not changed.
void IdRoute::PlaceOwnGradients(ThreadPool* pool) {
  CHECK(!HasMasks(rank_));  // all leaves are one node
  const bool use_bags = !changes_gradients_ || ids_.single_id_bags();
  const uint32_t* occurrences = ids_.occurrence_begin();
  gradient_offset_.Resize(ids_.size());
  node_begin_.Resize(owned_size() + 1)[owned_size()] = owned_size();
  nodes_.Resize(owned_size());
  const auto place = [&](int, int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const Range unique = ids_.OfTable(t);
      for (int64_t u = unique.begin; u < unique.end; ++u) {
        const bool in_bag = use_bags && occurrences[u + 1] - occurrences[u] == 1;
        const int64_t kept = gradients_.sent[t] + (u - unique.begin) * layout_->width(t);
        gradient_offset_[u] = in_bag ? bag_gradients_ + ids_.OccurrencesOf(u)[0].offset : kept;
        node_begin_[u] = u;
        nodes_[u] = {0, gradient_offset_[u]};
      }
    }
  };
  if (pool == nullptr) return place(0, 0, layout_->tables());
  pool->ParallelFor(layout_->tables(), 1, place);
}

void IdRoute::PlaceReceivedGradients() {
  const int64_t tables = layout_->tables();
  node_begin_.Resize(owned_size() + 1);
  std::fill_n(node_begin_.data(), owned_size() + 1, 0);
  for (int requester = 0; requester < ranks_; ++requester) {
    for (int64_t i = received_.begin[requester * tables];
         i < received_.begin[(requester + 1) * tables]; ++i) {
      node_begin_[received_items_[i] + 1] += std::popcount(MaskOf(requester, i));
    }
  }
  std::partial_sum(node_begin_.data(), node_begin_.data() + owned_size() + 1, node_begin_.data());
  nodes_.Resize(node_begin_[owned_size()]);
  node_cursor_.Resize(owned_size());
  std::copy_n(node_begin_.data(), owned_size(), node_cursor_.data());

  // Requesters ascend, and so do their leaves: an owned key's nodes end up in leaf order.
  for (int64_t k = 0; k < ranks_ * tables; ++k) {
    const int requester = static_cast<int>(k / tables);
    int64_t at = gradients_.received[k];
    for (int64_t i = received_.begin[k]; i < received_.begin[k + 1]; ++i) {
      for (uint64_t mask = MaskOf(requester, i); mask != 0; mask &= mask - 1) {
        const Range& node = canonical_nodes_[requester][std::countr_zero(mask)];
        nodes_[node_cursor_[received_items_[i]]++] = {node.begin, at};
        at += layout_->width(k % tables);
      }
    }
  }
  for (int64_t j = 0; sorts_nodes_ && j < owned_size(); ++j) {
    std::sort(nodes_.data() + node_begin_[j], nodes_.data() + node_begin_[j + 1],
              [](const Node& a, const Node& b) { return a.leaf < b.leaf; });
  }
}

}  // namespace elastor
