#ifndef ELASTOR_EMBEDDING_ID_ROUTE_H_
#define ELASTOR_EMBEDDING_ID_ROUTE_H_

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "collective/rank_hosts.h"
#include "core/base/leaves.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "embedding/embedding_layout.h"
#include "embedding/exchange_places.h"
#include "embedding/grow_buffer.h"
#include "embedding/key_index.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"
#include "embedding/unique_ids.h"

namespace elastor {

// The plan of one batch's exchanges: which rank sends which rows and gradients to which rank. After
// Route every rank knows the place of every vector in the later exchanges, so these carry only
// vectors.
//
// A *list* is the keys one rank (the requester) sends to another (the owner): table after table, in
// the order first seen in the requester's batch. Keys of replicated tables are on the lists to all
// ranks.
//
// The message: words [keys per table][if a table needs times: the largest of the batch][keys][when
// the requester's leaves are several canonical nodes: per key a bit mask of the nodes in which it
// occurs][for every table whose rules count: the occurrences of each key in the requester's batch,
// in 32 bits, two a word].
//
// A rank's own list is kept and never goes through the communicator. Where vectors lie:
// exchange_places.h.
//
// By host (parallel.by_host) a way has two legs, each a route of its own. Within a host, lists go
// to the ranks that gather for the owners (RankHosts::Gatherer): to this leg they are the owners.
// Between hosts, a gatherer asks the owners for each of its keys once; to this leg it is the
// requester, its unique ids are the keys that it has gathered, and its nodes are its host's.
class IdRoute {
 public:
  // layout and plan outlive the object. leaves: V. changes_gradients: whether gradients are changed
  // where they lie (by L2, or by rounding). hosts: null for the whole way; else this is the leg
  // within the host, and hosts outlives the object.
  IdRoute(const EmbeddingLayout* layout, const ShardPlan* plan, int rank, int64_t leaves,
          bool changes_gradients, const RankHosts* hosts = nullptr);
  // The leg between hosts behind `within`, which outlives the object.
  explicit IdRoute(const IdRoute* within);

  // Makes one exchange of sizes and one of keys. User error on all ranks when a rank has a bad id,
  // which the leg within a host leaves to the one behind it. The threads of `pool` share the work;
  // null: the calling thread alone.
  Status Route(const SparseBatch& batch, Communicator* communicator, ThreadPool* pool);
  // Does the same for the leg between hosts.
  Status RouteGathered(Communicator* communicator);

  // Returns what Route would exchange for the batch, without a communicator. Whoever predicts a job
  // counts by it. User error if this rank has a bad id. Leaves the object without a route.
  StatusOr<RouteDemand> Count(const SparseBatch& batch, ThreadPool* pool);
  // For the leg between hosts: the leg within takes the lists of its host's ranks, which have
  // counted, itself included; then the leg between hosts counts what they ask for.
  void Gather(std::span<IdRoute* const> from);
  RouteDemand CountGathered();

  const UniqueIds& ids() const { return ids_; }
  // Returns how many keys this rank lists: the batch's unique ids, or between hosts those gathered.
  int64_t listed_size() const { return within_ == nullptr ? ids_.size() : within_->owned_size(); }
  // Returns whether this is the only rank. Then unique id u is owned key u.
  bool alone() const { return ranks_ == 1; }

  // ---- As requester: the rows that this rank's batch needs.
  // Returns the unique ids (numbers in ids()) of `table` on the list to `owner`.
  std::span<const uint32_t> Sent(int owner, int64_t table) const {
    return sent_.OfTable(owner, table, sent_items_.data());
  }
  // Returns the canonical nodes of this rank's leaves, or of its host's between hosts, and the mask
  // of nodes in which unique id u occurs (bit i: node i).
  const std::vector<Range>& nodes() const { return canonical_nodes_[rank_]; }
  uint64_t NodeMask(int64_t u) const { return node_masks_[u]; }
  // Returns the offset in the gradient array of the vectors of unique id u's nodes, which lie one
  // after the other.
  int64_t GradientOffset(int64_t u) const { return gradient_offset_[u]; }
  // The gradients of the bags, [row][feature], begin here in the gradient array, behind those that
  // are exchanged. With one rank an id that occurs once has its gradient there.
  int64_t bag_gradients() const { return bag_gradients_; }
  bool HasBagGradient(int64_t u) const { return gradient_offset_[u] >= bag_gradients_; }

  // ---- As owner: the rows of this rank that the batches of all ranks need.
  // The number of different (table, key) pairs, which are numbered table after table.
  int64_t owned_size() const { return owned_begin_.back(); }
  Range OwnedOfTable(int64_t t) const { return {owned_begin_[t], owned_begin_[t + 1]}; }
  const int64_t* owned_keys() const { return owned_keys_.data(); }
  // The occurrences of owned keys in the whole batch, of tables whose rules count.
  const uint32_t* owned_counts() const { return owned_counts_.data(); }
  // Returns the largest TIME in the whole batch; 0 unless a table needs it (RowRules::by_time).
  int64_t latest() const { return latest_; }
  // Returns the numbers of the keys of `table` on the list from `requester`.
  std::span<const uint32_t> Received(int requester, int64_t table) const {
    return received_.OfTable(requester, table, received_items_.data());
  }
  // A vector of the gradient array standing for a node of the leaf tree.
  struct Node {
    int64_t leaf;
    int64_t offset;
  };
  // Returns the nodes of owned key j, in ascending leaf order; at least one.
  std::span<const Node> NodesOf(int64_t j) const {
    return {nodes_.data() + node_begin_[j], nodes_.data() + node_begin_[j + 1]};
  }

  // ---- The vector arrays.
  const RowPlaces& rows() const { return rows_; }
  const GradientPlaces& gradients() const { return gradients_; }

 private:
  // Lists by rank, each cut by table.
  struct Lists {
    std::vector<int64_t> begin;  // [rank * tables + table], and the end
    int64_t tables = 0;
    std::span<const uint32_t> OfTable(int64_t rank, int64_t t, const uint32_t* items) const {
      const int64_t i = rank * tables + t;
      return {items + begin[i], items + begin[i + 1]};
    }
    int64_t count(int64_t rank, int64_t t) const {
      return begin[rank * tables + t + 1] - begin[rank * tables + t];
    }
    int64_t OfRank(int64_t rank) const { return begin[(rank + 1) * tables] - begin[rank * tables]; }
    std::vector<int64_t> counts() const;  // [rank * tables + table]
  };

  // What lists are made of: unique ids of the batch, or gathered keys.
  Range OfTable(int64_t t) const {
    return within_ == nullptr ? ids_.OfTable(t) : within_->OwnedOfTable(t);
  }
  const int64_t* keys() const { return within_ == nullptr ? ids_.keys() : within_->owned_keys(); }
  uint64_t OccurrencesOf(int64_t u) const {
    return within_ == nullptr ? ids_.OccurrencesOf(u).size() : within_->owned_counts()[u];
  }

  // Exchanges the lists and finds the places. mine: whether this rank's batch is good.
  Status ExchangeLists(const Status& mine, Communicator* communicator, ThreadPool* pool);
  Status ExchangeSizes(Communicator* communicator);
  Status ExchangeMessages(Communicator* communicator);
  bool AnybodyFailed() const;
  RouteDemand Demand() const;
  void MakeLists();
  void MakeNodeMasks();
  // Returns the length in words of the message to a rank.
  int64_t MessageWords(int rank) const;
  int64_t WriteMessages();
  // Writes the message to rank r.
  void WriteMessage(int r, int64_t* word) const;
  void ReadLists();
  void NumberOwnedKeys();
  std::vector<int64_t> SentVectors() const;  // gradients by cell
  void PlaceVectors();
  int64_t CountNodes(int64_t u) const {
    return HasMasks(rank_) ? std::popcount(node_masks_[u]) : 1;
  }
  void PlaceSentGradients();
  void PlaceReceivedGradients();
  void PlaceOwnGradients(ThreadPool* pool);
  const int64_t* MessageFrom(int requester) const {
    return words_.data() + message_begin_[requester];
  }
  // Returns the mask of `requester`'s nodes in which the key of received item i occurs.
  uint64_t MaskOf(int requester, int64_t i) const;
  bool HasMasks(int requester) const { return canonical_nodes_[requester].size() > 1; }
  bool Counts(int64_t table) const { return layout_->table(table).rules.counts(); }
  // Returns the words of a message in front of its keys.
  int64_t HeaderWords() const { return layout_->tables() + (has_times_ ? 1 : 0); }
  static int64_t CountWords(int64_t keys) { return (keys + 1) / 2; }
  // Returns where the counts of `table` begin in the message from `requester`.
  const int64_t* CountsFrom(int requester, int64_t table) const;

  // Constant after construction.
  const EmbeddingLayout* layout_;
  const ShardPlan* plan_;
  int rank_;
  int ranks_;
  int64_t leaves_;
  Range owned_leaves_;
  bool changes_gradients_;
  const RankHosts* hosts_ = nullptr;  // with two legs
  const IdRoute* within_ = nullptr;   // between hosts
  std::vector<int> list_of_;          // by owner: the rank on whose list its keys are
  std::vector<bool> sends_,
      receives_;              // by rank: whether a message goes there, and comes from there
  bool sorts_nodes_ = false;  // requesters do not ascend as their leaves do
  bool has_times_ = false;
  std::vector<std::vector<Range>> canonical_nodes_;  // by requester

  UniqueIds ids_;
  Status batch_status_;  // within a host
  int64_t own_latest_ = 0;
  int64_t latest_ = 0;
  Lists sent_;
  GrowBuffer<uint32_t> sent_items_;
  GrowBuffer<int32_t> owner_of_;  // by unique id
  GrowBuffer<uint64_t> node_masks_;
  GrowBuffer<int64_t> gradient_offset_;
  int64_t bag_gradients_ = 0;

  GrowBuffer<int64_t> words_;           // messages: sent, kept, received
  std::vector<int64_t> message_begin_;  // begin of each rank's message in words_
  std::vector<int64_t> send_words_, receive_words_;

  Lists received_;
  GrowBuffer<uint32_t> received_items_;
  KeyIndex index_;
  std::vector<int64_t> owned_begin_;
  GrowBuffer<int64_t> owned_keys_;
  GrowBuffer<uint32_t> owned_counts_;
  GrowBuffer<int64_t> node_begin_;
  GrowBuffer<int64_t> node_cursor_;
  GrowBuffer<Node> nodes_;

  RowPlaces rows_;
  GradientPlaces gradients_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ID_ROUTE_H_
