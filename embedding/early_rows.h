#ifndef ELASTOR_EMBEDDING_EARLY_ROWS_H_
#define ELASTOR_EMBEDDING_EARLY_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "collective/rank_hosts.h"
#include "core/base/status.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/embedding_layout.h"
#include "embedding/exchange_places.h"
#include "embedding/grow_buffer.h"
#include "embedding/id_route.h"
#include "embedding/key_index.h"
#include "embedding/shard_plan.h"
#include "embedding/unique_ids.h"

namespace elastor {

// Which rows of the next batch travel *early*, while the present one computes
// (parallel.first_ids_first): those that the present step does not update, on whatever rank its
// batch has them. Their owner knows, since it has the ids of both batches from all ranks. It tells
// each requester by one bit a row. The other rows are *late*: they travel when their step begins.

// Returns whether rows may be early at all. Dense-equivalent Adam updates every row in every step,
// and rows of replicated tables do not travel. hosts: null unless vectors go by host, where no row
// is early: it would have to be told on both legs.
bool HasEarlyRows(const ShardPlan& plan, int tables, OptimizerKind kind, const RankHosts* hosts);

// Some of a batch's rows, which travel in one exchange.
class RowPart {
 public:
  const RowPlaces& places() const { return places_; }
  // Return, by cell (exchange_places.h), the numbers of the owned keys whose rows are sent, and of
  // the unique ids whose rows are received, in the order of the vectors.
  std::span<const uint32_t> Sent(int64_t cell) const { return sent_.Of(cell); }
  std::span<const uint32_t> Received(int64_t cell) const { return received_.Of(cell); }

 private:
  friend class EarlyRows;
  struct Lists {
    std::vector<uint32_t> items;
    std::vector<int64_t> begin;  // by cell, and the end
    std::span<const uint32_t> Of(int64_t cell) const {
      return {items.data() + begin[cell], items.data() + begin[cell + 1]};
    }
    void Clear();
    void EndCell() { begin.push_back(static_cast<int64_t>(items.size())); }
    std::vector<int64_t> counts() const;
  };

  RowPlaces places_;
  Lists sent_, received_;
};

// Finds those of a list of keys that are not in another list.
class NewKeys {
 public:
  // Sets is_new[i] to whether keys[i] is not among the known ones.
  void Find(std::span<const int64_t> known, std::span<const int64_t> keys, uint8_t* is_new);

 private:
  KeyIndex index_;
  GrowBuffer<int64_t> list_;
  GrowBuffer<uint32_t> numbers_;
};

// The early and the late rows of one batch on one rank. Reusable.
class EarlyRows {
 public:
  // layout and plan outlive the object.
  EarlyRows(const EmbeddingLayout* layout, const ShardPlan* plan, int rank);

  // As owner: marks the keys of `next` that the step of `present` does not update. Returns the
  // marks, by owned key of `next`; the caller may clear some.
  uint8_t* Choose(const IdRoute& present, const IdRoute& next);
  // Tells the requesters, and learns what the other owners have marked. Collective.
  Status Tell(const IdRoute& next, Communicator* communicator);

  // REQUIRES: Tell.
  const RowPart& early() const { return early_; }
  const RowPart& late() const { return late_; }

 private:
  const EmbeddingLayout* layout_;
  const ShardPlan* plan_;
  const int rank_;
  NewKeys new_keys_;
  GrowBuffer<uint8_t> marks_;                        // by owned key
  std::vector<uint64_t> words_;                      // of bits: sent, then received
  std::vector<int64_t> send_bytes_, receive_bytes_;  // of them, by rank
  RowPart early_, late_;
};

// Returns what rank `rank` receives early of the batch whose ids `next` has counted
// (IdRoute::Count), where `updated` are the ids of the present batch, of all ranks' rows. Whoever
// predicts a job counts by it (CountRoutes). Where tables have an admission these are the most that
// it may receive.
VectorExchange CountEarlyRows(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                              const UniqueIds& updated, const IdRoute& next);

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_EARLY_ROWS_H_
