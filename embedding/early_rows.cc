#include "embedding/early_rows.h"

#include <algorithm>
#include <utility>

namespace elastor {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kWordBytes = sizeof(uint64_t);

// Sets *bytes to those of a bit a row, in whole words, by rank. Returns their words.
int64_t SizeBits(const std::vector<int64_t>& rows, std::vector<int64_t>* bytes) {
  int64_t words = 0;
  bytes->clear();
  for (const int64_t of_rank : rows) {
    words += (of_rank + kWordBits - 1) / kWordBits;
    bytes->push_back((of_rank + kWordBits - 1) / kWordBits * kWordBytes);
  }
  return words;
}

}  // namespace

bool HasEarlyRows(const ShardPlan& plan, int tables, OptimizerKind kind, const RankHosts* hosts) {
  if (plan.ranks() == 1 || kind == OptimizerKind::kDenseAdam || hosts != nullptr) return false;
  for (int t = 0; t < tables; ++t) {
    if (!plan.replicated(t)) return true;
  }
  return false;
}

void RowPart::Lists::Clear() {
  items.clear();
  begin.assign(1, 0);
}

std::vector<int64_t> RowPart::Lists::counts() const {
  std::vector<int64_t> counts(begin.size() - 1);
  for (size_t k = 0; k < counts.size(); ++k) counts[k] = begin[k + 1] - begin[k];
  return counts;
}

void NewKeys::Find(std::span<const int64_t> known, std::span<const int64_t> keys, uint8_t* is_new) {
  const auto most = static_cast<int64_t>(known.size() + keys.size());
  index_.Reset(most, list_.Resize(most));
  uint32_t* const numbers =
      numbers_.Resize(static_cast<int64_t>(std::max(known.size(), keys.size())));
  index_.Number(known, numbers);
  const uint32_t first_new = index_.size();
  index_.Number(keys, numbers);
  for (size_t i = 0; i < keys.size(); ++i) is_new[i] = numbers[i] >= first_new ? 1 : 0;
}

EarlyRows::EarlyRows(const EmbeddingLayout* layout, const ShardPlan* plan, int rank)
    : layout_(layout), plan_(plan), rank_(rank) {}

uint8_t* EarlyRows::Choose(const IdRoute& present, const IdRoute& next) {
  uint8_t* const marks = marks_.Resize(next.owned_size());
  const auto keys_of = [](const IdRoute& route, int64_t t) {
    const Range owned = route.OwnedOfTable(t);
    return std::span(route.owned_keys() + owned.begin, route.owned_keys() + owned.end);
  };
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const std::span<const int64_t> keys = keys_of(next, t);
    if (keys.empty() || plan_->replicated(static_cast<int>(t))) continue;
    new_keys_.Find(keys_of(present, t), keys, marks + next.OwnedOfTable(t).begin);
  }
  return marks;
}

Status EarlyRows::Tell(const IdRoute& next, Communicator* communicator) {
  const RowPlaces& places = next.rows();
  const int64_t tables = layout_->tables();
  const int ranks = plan_->ranks();
  const int64_t received_at = SizeBits(places.exchange.send_vectors, &send_bytes_);
  const int64_t words = received_at + SizeBits(places.exchange.receive_vectors, &receive_bytes_);
  words_.assign(words, 0);
  for (RowPart* part : {&early_, &late_}) {
    part->sent_.Clear();
    part->received_.Clear();
  }

  uint64_t* word = words_.data();
  for (int r = 0; r < ranks; ++r) {
    int64_t bit = 0;
    for (int64_t t = 0; t < tables; ++t) {
      const bool travels = places.sent[r * tables + t] >= 0;
      for (const uint32_t owned : travels ? next.Received(r, t) : std::span<const uint32_t>()) {
        const bool early = marks_[owned] != 0;
        word[bit / kWordBits] |= uint64_t{early} << bit % kWordBits;
        ++bit;
        (early ? early_ : late_).sent_.items.push_back(owned);
      }
      for (RowPart* part : {&early_, &late_}) part->sent_.EndCell();
    }
    word += send_bytes_[r] / kWordBytes;
  }
  ELASTOR_RETURN_IF_ERROR(communicator->AllToAllV(Phase::kEarlyRows, words_.data(), send_bytes_,
                                                  words_.data() + received_at, receive_bytes_));
  word = words_.data() + received_at;
  for (int r = 0; r < ranks; ++r) {
    int64_t bit = 0;
    for (int64_t t = 0; t < tables; ++t) {
      const bool travels = places.received[r * tables + t] >= 0;
      for (const uint32_t id : travels ? next.Sent(r, t) : std::span<const uint32_t>()) {
        const bool early = (word[bit / kWordBits] >> bit % kWordBits & 1) != 0;
        ++bit;
        (early ? early_ : late_).received_.items.push_back(id);
      }
      for (RowPart* part : {&early_, &late_}) part->received_.EndCell();
    }
    word += receive_bytes_[r] / kWordBytes;
  }
  for (RowPart* part : {&early_, &late_}) {
    part->places_ =
        PlaceRows(*layout_, *plan_, rank_, part->sent_.counts(), part->received_.counts());
  }
  return OkStatus();
}

VectorExchange CountEarlyRows(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                              const UniqueIds& updated, const IdRoute& next) {
  const int64_t tables = layout.tables();
  const auto keys_of = [](const UniqueIds& ids, int64_t t) {
    const Range unique = ids.OfTable(t);
    return std::span(ids.keys() + unique.begin, ids.keys() + unique.end);
  };
  NewKeys new_keys;
  std::vector<uint8_t> is_new(next.ids().size());
  for (int64_t t = 0; t < tables; ++t) {
    new_keys.Find(keys_of(updated, t), keys_of(next.ids(), t),
                  is_new.data() + next.ids().OfTable(t).begin);
  }
  std::vector<int64_t> counts;
  for (int r = 0; r < plan.ranks(); ++r) {
    for (int64_t t = 0; t < tables; ++t) {
      int64_t& count = counts.emplace_back(0);
      for (const uint32_t id : next.Sent(r, t)) count += is_new[id];
    }
  }
  const std::vector<int64_t> none(counts.size(), 0);
  return PlaceRows(layout, plan, rank, none, std::move(counts)).exchange;
}

}  // namespace elastor
