#include "embedding/id_route.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/base/leaf_stack.h"
#include "glog/logging.h"

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

IdRoute::IdRoute(const EmbeddingLayout* layout, const ShardPlan* plan, int rank, int64_t leaves)
    : layout_(layout),
      plan_(plan),
      rank_(rank),
      ranks_(plan->ranks()),
      owned_leaves_(LeavesOfRank(rank, ranks_, leaves)),
      ids_(layout) {
  CHECK_GE(leaves, ranks_) << "every rank needs a leaf: raise parallel.virtual_shards";
  for (int r = 0; r < ranks_; ++r) {
    canonical_nodes_.push_back(CanonicalNodes(LeavesOfRank(r, ranks_, leaves)));
    CHECK_LE(canonical_nodes_.back().size(), size_t{64});
  }
  for (Exchange* exchange : {&rows_, &gradients_}) {
    exchange->send.assign(ranks_, 0);
    exchange->receive.assign(ranks_, 0);
  }
  for (Lists* lists : {&sent_, &received_}) {
    lists->tables = layout->tables();
    lists->begin.assign(ranks_ * layout->tables() + 1, 0);
  }
  owned_begin_.assign(layout->tables() + 1, 0);
}

Status IdRoute::Route(const SparseBatch& batch, Communicator* communicator) {
  CHECK_EQ(batch.first_leaf, owned_leaves_.begin);
  CHECK_EQ(static_cast<int64_t>(batch.leaf_offsets.size()), owned_leaves_.size() + 1);
  const Status mine = ids_.Build(batch);
  MakeLists();
  MakeNodeMasks();
  const Status exchanged = ExchangeMessages(communicator, !mine.ok());
  ELASTOR_RETURN_IF_ERROR(exchanged);
  const bool anybody_failed = std::count(receive_words_.begin(), receive_words_.end(), kFailed) > 0;
  if (anybody_failed) return AgreeOnStatus(*communicator, mine);
  ReadLists();
  NumberOwnedKeys();
  SizeRowExchange();
  PlaceSentGradients();
  PlaceReceivedGradients();
  return OkStatus();
}

void IdRoute::MakeLists() {
  const int64_t tables = layout_->tables();
  const int64_t* keys = ids_.keys();
  owner_of_.Resize(ids_.size());
  std::fill(sent_.begin.begin(), sent_.begin.end(), 0);
  const auto count = [&](int64_t rank, int64_t t) -> int64_t& {
    return sent_.begin[rank * tables + t + 1];
  };
  for (int64_t t = 0; t < tables; ++t) {
    const Range unique = ids_.OfTable(t);
    if (plan_->replicated(t)) {
      for (int r = 0; r < ranks_; ++r) count(r, t) = unique.size();
      continue;
    }
    for (int64_t u = unique.begin; u < unique.end; ++u) {
      owner_of_[u] = ranks_ == 1 ? 0 : plan_->Owner(t, keys[u] % kPartitions);
      ++count(owner_of_[u], t);
    }
  }
  std::partial_sum(sent_.begin.begin(), sent_.begin.end(), sent_.begin.begin());

  sent_items_.Resize(sent_.begin.back());
  std::vector<uint32_t*> cursor(ranks_);
  for (int64_t t = 0; t < tables; ++t) {
    const Range unique = ids_.OfTable(t);
    for (int r = 0; r < ranks_; ++r) {
      cursor[r] = sent_items_.data() + sent_.begin[r * tables + t];
      if (plan_->replicated(t)) {
        std::iota(cursor[r], cursor[r] + unique.size(), static_cast<uint32_t>(unique.begin));
      }
    }
    if (plan_->replicated(t)) continue;
    for (int64_t u = unique.begin; u < unique.end; ++u) {
      *cursor[owner_of_[u]]++ = static_cast<uint32_t>(u);
    }
  }
}

void IdRoute::MakeNodeMasks() {
  uint64_t* masks = node_masks_.Resize(ids_.size());
  std::fill_n(masks, ids_.size(), uint64_t{1});
  if (!HasMasks(rank_)) return;
  std::vector<uint64_t> mask_of_leaf;
  for (size_t i = 0; i < nodes().size(); ++i) {
    mask_of_leaf.insert(mask_of_leaf.end(), nodes()[i].size(), uint64_t{1} << i);
  }
  for (int64_t u = 0; u < ids_.size(); ++u) {
    masks[u] = 0;
    for (const Occurrence& occurrence : ids_.OccurrencesOf(u)) {
      masks[u] |= mask_of_leaf[occurrence.leaf - owned_leaves_.begin];
    }
  }
}

Status IdRoute::ExchangeMessages(Communicator* communicator, bool failed) {
  send_words_.assign(ranks_, kFailed);
  receive_words_.assign(ranks_, 0);
  if (!failed) {
    for (int r = 0; r < ranks_; ++r) {
      send_words_[r] = layout_->tables() + sent_.OfRank(r) * (HasMasks(rank_) ? 2 : 1);
    }
  }
  ELASTOR_RETURN_IF_ERROR(communicator->AllToAll(Phase::kIdExchange, send_words_.data(),
                                                 receive_words_.data(), kWordBytes));
  for (int64_t words : receive_words_) {
    if (words == kFailed) return OkStatus();  // every rank sees it: all stop here together
  }
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
    int64_t* word = words_.data() + at;
    for (int64_t t = 0; t < layout_->tables(); ++t) *word++ = sent_.count(r, t);
    const std::span<const uint32_t> list(sent_items_.data() + sent_.begin[r * sent_.tables],
                                         sent_.OfRank(r));
    for (uint32_t u : list) *word++ = ids_.keys()[u];
    if (!HasMasks(rank_)) continue;
    for (uint32_t u : list) *word++ = static_cast<int64_t>(node_masks_[u]);
  }
  return sent + kept;
}

void IdRoute::ReadLists() {
  const int64_t tables = layout_->tables();
  int64_t total = 0;
  for (int home = 0; home < ranks_; ++home) {
    for (int64_t t = 0; t < tables; ++t) {
      received_.begin[home * tables + t] = total;
      total += MessageFrom(home)[t];
    }
  }
  received_.begin.back() = total;
}

void IdRoute::NumberOwnedKeys() {
  const int64_t tables = layout_->tables();
  const int64_t total = received_.begin.back();
  received_items_.Resize(total);
  owned_keys_.Resize(total);
  for (int64_t t = 0; t < tables; ++t) {
    const int64_t first = owned_begin_[t];
    int64_t expected = 0;
    for (int home = 0; home < ranks_; ++home) expected += received_.count(home, t);
    if (ranks_ > 1) index_.Reset(expected, owned_keys_.data() + first);
    for (int home = 0; home < ranks_; ++home) {
      const int64_t begin = received_.begin[home * tables + t];
      const int64_t in_list = begin - received_.begin[home * tables];
      const int64_t* keys = MessageFrom(home) + tables + in_list;
      uint32_t* number = received_items_.data() + begin;
      if (ranks_ == 1) {  // one list: its keys are different already
        std::copy_n(keys, expected, owned_keys_.data() + first);
        std::iota(number, number + expected, static_cast<uint32_t>(first));
        continue;
      }
      for (int64_t i = 0; i < received_.count(home, t); ++i) {
        number[i] = static_cast<uint32_t>(first) + index_.FindOrAdd(keys[i]);
      }
    }
    owned_begin_[t + 1] = first + (ranks_ == 1 ? expected : index_.size());
  }
}

void IdRoute::SizeRowExchange() {
  for (int r = 0; r < ranks_; ++r) {
    rows_.send[r] = rows_.receive[r] = 0;
    for (int64_t t = 0; t < layout_->tables() && r != rank_; ++t) {
      if (plan_->replicated(t)) continue;
      rows_.send[r] += received_.count(r, t) * layout_->width(t);
      rows_.receive[r] += sent_.count(r, t) * layout_->width(t);
    }
  }
  rows_.sent = Sum(rows_.send);
  rows_.received = Sum(rows_.receive);
}

void IdRoute::PlaceSentGradients() {
  const auto elements = [&](int owner, int64_t t) {
    int64_t vectors = 0;
    for (uint32_t u : Sent(owner, t)) vectors += std::popcount(node_masks_[u]);
    return vectors * layout_->width(t);
  };
  int64_t total = 0;
  for (int r = 0; r < ranks_; ++r) {
    gradients_.send[r] = 0;
    for (int64_t t = 0; t < layout_->tables(); ++t) gradients_.send[r] += elements(r, t);
    total += gradients_.send[r];
  }
  gradients_.kept = std::exchange(gradients_.send[rank_], 0);
  gradients_.sent = total - gradients_.kept;

  gradient_offset_.Resize(ids_.size());
  const auto place = [&](int owner, int64_t t, int64_t offset) {
    for (uint32_t u : Sent(owner, t)) {
      gradient_offset_[u] = offset;
      offset += std::popcount(node_masks_[u]) * layout_->width(t);
    }
    return offset;
  };
  int64_t offset = gradients_.sent;
  for (int64_t t = 0; t < layout_->tables(); ++t) offset = place(rank_, t, offset);
  replica_copies_.clear();
  offset = 0;
  for (int r = 0; r < ranks_; ++r) {
    for (int64_t t = 0; t < layout_->tables() && r != rank_; ++t) {
      if (!plan_->replicated(t)) {
        offset = place(r, t, offset);
      } else if (ids_.OfTable(t).size() > 0) {
        const int64_t length = elements(r, t);
        replica_copies_.push_back({gradient_offset_[ids_.OfTable(t).begin], offset, length});
        offset += length;
      }
    }
  }
}

void IdRoute::PlaceReceivedGradients() {
  const int64_t tables = layout_->tables();
  const auto mask_at = [&](int home, int64_t i) {  // of item i of all lists
    if (!HasMasks(home)) return uint64_t{1};
    const int64_t in_list = i - received_.begin[home * tables];
    return static_cast<uint64_t>(MessageFrom(home)[tables + received_.OfRank(home) + in_list]);
  };
  node_begin_.Resize(owned_size() + 1);
  std::fill_n(node_begin_.data(), owned_size() + 1, 0);
  for (int home = 0; home < ranks_; ++home) {
    for (int64_t i = received_.begin[home * tables]; i < received_.begin[(home + 1) * tables];
         ++i) {
      node_begin_[received_items_[i] + 1] += std::popcount(mask_at(home, i));
    }
  }
  std::partial_sum(node_begin_.data(), node_begin_.data() + owned_size() + 1, node_begin_.data());
  nodes_.Resize(node_begin_[owned_size()]);
  node_cursor_.Resize(owned_size());
  std::copy_n(node_begin_.data(), owned_size(), node_cursor_.data());

  // Homes ascend, and so do their leaves: an owned key's nodes end up in leaf order.
  const int64_t received_at = gradients_.sent + gradients_.kept;
  int64_t offset = received_at;
  for (int home = 0; home < ranks_; ++home) {
    const int64_t list_at = home == rank_ ? gradients_.sent : offset;
    int64_t at = list_at;
    for (int64_t t = 0; t < tables; ++t) {
      const int64_t begin = received_.begin[home * tables + t];
      for (int64_t i = begin; i < begin + received_.count(home, t); ++i) {
        for (uint64_t mask = mask_at(home, i); mask != 0; mask &= mask - 1) {
          const Range& node = canonical_nodes_[home][std::countr_zero(mask)];
          nodes_[node_cursor_[received_items_[i]]++] = {node.begin, at};
          at += layout_->width(t);
        }
      }
    }
    gradients_.receive[home] = home == rank_ ? 0 : at - list_at;
    offset += gradients_.receive[home];
  }
  gradients_.received = offset - received_at;
}

}  // namespace elastor
