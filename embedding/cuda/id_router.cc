#include "embedding/cuda/id_router.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/base/log.h"

namespace elastor::cuda {
namespace {

int BitsFor(int64_t values) { return std::bit_width(static_cast<uint64_t>(values - 1)); }

}  // namespace

IdRouter::IdRouter(const EmbeddingLayout* layout, const ShardPlan* plan, int64_t leaves,
                   const TableView* tables, DeviceCommunicator* communicator, Stream* stream)
    : layout_(layout),
      plan_(plan),
      tables_(tables),
      communicator_(communicator),
      stream_(stream),
      rank_(communicator->rank()),
      ranks_(communicator->size()),
      owned_leaves_(LeavesOfRank(rank_, ranks_, leaves)),
      canonical_nodes_(NodesOfRanks(ranks_, leaves)),
      fields_(stream),
      table_rows_(stream),
      owners_(stream),
      node_of_leaf_(stream),
      sort_(stream),
      keys_(stream),
      values_(stream) {
  MakeFormat();
  UploadPlan();
}

void IdRouter::MakeFormat() {
  int64_t most_rows = 2;
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    most_rows = std::max(most_rows, layout_->table(t).rows);
  }
  format_ = {BitsFor(most_rows), BitsFor(std::max<int64_t>(layout_->tables(), 1)), BitsFor(ranks_)};
  CHECK_LE(format_.bits(), 64) << "rows, tables and ranks of this model need more than 64 bits";
}

SortKeys IdRouter::KeysIn(Buffer<uint64_t>* buffer, int64_t count) const {
  if (format_.bits() > 32) return {buffer->Resize(count), nullptr};
  return {nullptr, reinterpret_cast<uint32_t*>(buffer->Resize((count + 1) / 2))};
}

void IdRouter::Sort(int64_t count, int bits, const SortKeys& keys, const SortKeys& sorted_keys,
                    uint32_t* sorted_values) {
  if (keys.narrow != nullptr) {
    sort_.SortPairs(count, bits, keys.narrow, sorted_keys.narrow, values_.data(), sorted_values);
  } else {
    sort_.SortPairs(count, bits, keys.wide, sorted_keys.wide, values_.data(), sorted_values);
  }
}

void IdRouter::UploadPlan() {
  std::vector<FieldView> fields;
  for (int64_t f = 0; f < layout_->fields(); ++f) {
    fields.push_back({layout_->field(f).table, static_cast<int32_t>(layout_->first_feature(f)),
                      static_cast<int32_t>(layout_->field_width(f)),
                      layout_->field(f).pooling == Pooling::kMean});
  }
  Upload(*stream_, fields, &fields_);
  std::vector<int64_t> rows;
  for (int64_t t = 0; t < layout_->tables(); ++t) rows.push_back(layout_->table(t).rows);
  Upload(*stream_, rows, &table_rows_);
  Upload(*stream_, NodeOfLeaf(canonical_nodes_[rank_]), &node_of_leaf_);
  if (ranks_ == 1) return;
  std::vector<int32_t> owners;
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    for (int64_t p = 0; p < kPartitions; ++p) {
      const int owner = plan_->Owner(static_cast<int>(t), p);
      owners.push_back(owner == kAllRanks ? rank_ : owner);
    }
  }
  Upload(*stream_, owners, &owners_);
}

Status IdRouter::Route(const SparseBatch& batch, IdRoute* route) {
  CHECK_EQ(batch.fields, layout_->fields());
  CHECK_EQ(batch.first_leaf, owned_leaves_.begin);
  CHECK_EQ(static_cast<int64_t>(batch.leaf_offsets.size()), owned_leaves_.size() + 1);
  CHECK_EQ(batch.leaf_offsets.back(), batch.rows);
  UploadBatch(batch, route);
  SizeRequester(route);
  EnqueueRequester(route);
  ELASTOR_RETURN_IF_ERROR(WaitForCounts(route));
  Status mine;
  const int64_t bad = route->host_counts[kBadOccurrence];
  if (bad != 0) mine = BadId(batch, bad, *route);
  if (ranks_ == 1) {
    route->owned = {route->unique_keys.data(), route->counts.data() + kUniques, route->uniques,
                    format_};
    return mine;
  }
  const Lists sent = SentLists(*route);
  Lists received;
  bool failed = false;
  ELASTOR_RETURN_IF_ERROR(ExchangeCounts(sent, !mine.ok(), &received, &failed));
  if (failed) return AgreeOnStatus(*communicator_->host(), mine);
  PlaceCells(sent, received, route);
  ELASTOR_RETURN_IF_ERROR(ExchangeKeys(route));
  EnqueueOwner(route);
  return OkStatus();
}

void IdRouter::Stage(const SparseBatch& batch, PinnedIds* staged) const {
  const auto ids = static_cast<int64_t>(batch.ids.size());
  const auto offsets = static_cast<int64_t>(batch.offsets.size());
  const auto leaves = static_cast<int64_t>(batch.leaf_offsets.size());
  if (offsets == 0) {
    CHECK_EQ(ids, batch.rows * batch.fields);
  } else {
    CHECK_EQ(offsets, batch.rows * batch.fields + 1);
    CHECK(batch.offsets.front() == 0 && batch.offsets.back() == ids);
    CHECK(std::is_sorted(batch.offsets.begin(), batch.offsets.end()));
  }
  int64_t* at = staged->words.Resize(offsets + leaves + ids);
  at = std::copy(batch.offsets.begin(), batch.offsets.end(), at);
  at = std::copy(batch.leaf_offsets.begin(), batch.leaf_offsets.end(), at);
  staged->offsets = offsets;
  staged->leaves = leaves;
  staged->ids = ids;
  staged->short_ids = format_.id_bits < 32;
  if (staged->short_ids) {
    std::transform(batch.ids.begin(), batch.ids.end(), reinterpret_cast<uint32_t*>(at),
                   [](int64_t id) {
                     return static_cast<uint64_t>(id) < kNoId ? static_cast<uint32_t>(id) : kNoId;
                   });
  } else {
    std::copy(batch.ids.begin(), batch.ids.end(), at);
  }
}

void IdRouter::UploadBatch(const SparseBatch& batch, IdRoute* route) {
  const auto ids = static_cast<int64_t>(batch.ids.size());
  const auto offsets = static_cast<int64_t>(batch.offsets.size());
  const auto leaves = static_cast<int64_t>(batch.leaf_offsets.size());
  CHECK_LT(ids, std::numeric_limits<int32_t>::max()) << "ids of one rank and batch";
  CHECK_LT(batch.rows * std::max(layout_->fields(), layout_->features()),
           int64_t{std::numeric_limits<uint32_t>::max()})
      << "rows of one rank times features";
  route->rows = batch.rows;
  route->occurrences = ids;
  route->single_id_bags = offsets == 0;
  // The staged memory is free afterwards: every call waits for the device's counts after its
  // uploads.
  const auto* staged = static_cast<const PinnedIds*>(batch.staged.get());
  if (staged == nullptr) {
    Stage(batch, &route->staged);
    staged = &route->staged;
  }
  CHECK(staged->offsets == offsets && staged->leaves == leaves && staged->ids == ids);
  CHECK_EQ(staged->short_ids, format_.id_bits < 32);
  const int64_t* const words = staged->words.data();
  Copy(*stream_, route->offsets.Resize(offsets), words, offsets);
  Copy(*stream_, route->leaf_offsets.Resize(leaves), words + offsets, leaves);
  const int64_t* const staged_ids = words + offsets + leaves;
  BatchView& view = route->batch;
  view = {};
  if (staged->short_ids) {
    Copy(*stream_, route->short_ids.Resize(ids), reinterpret_cast<const uint32_t*>(staged_ids),
         ids);
    view.short_ids = route->short_ids.data();
  } else {
    Copy(*stream_, route->ids.Resize(ids), staged_ids, ids);
    view.ids = route->ids.data();
  }
  view.occurrences = ids;
  view.rows = batch.rows;
  view.fields = batch.fields;
  if (!route->single_id_bags) {
    view.offsets = route->offsets.data();
    view.bags = route->bags.Resize(ids);
    ExpandBags(*stream_, view, route->bags.data());
  }
  view.leaves = route->row_leaves.Resize(batch.rows);
  ExpandLeaves(*stream_, route->leaf_offsets.data(), leaves - 1, batch.first_leaf, batch.rows,
               route->row_leaves.data());
  view.field_views = fields_.data();
  view.table_rows = table_rows_.data();
  view.owners = ranks_ == 1 ? nullptr : owners_.data();
  view.format = format_;
}

void IdRouter::SizeRequester(IdRoute* route) {
  const int64_t n = route->occurrences;
  RequesterView& requester = route->requester;
  requester.sorted_keys = KeysIn(&route->sorted_keys, n);
  requester.sorted = route->sorted.Resize(n);
  requester.sources = route->sources.Resize(n);
  requester.scales = route->single_id_bags ? nullptr : route->scales.Resize(n);
  requester.leaves = route->leaves.Resize(n);
  requester.unique_number = route->unique_number.Resize(n);
  requester.run_number = route->run_number.Resize(n);
  requester.segment_number =
      HasMasks(rank_) ? route->segment_number.Resize(n) : route->unique_number.data();
  requester.chunk_number = route->chunk_number.Resize(n);
  requester.run_begin = route->run_begin.Resize(n + 1);
  requester.segment_begin = route->segment_begin.Resize(n + 1);
  requester.unique_of = route->unique_of.Resize(n);
  requester.unique_keys = route->unique_keys.Resize(n);
  requester.unique_segment = route->unique_segment.Resize(n + 1);
  requester.node_masks = HasMasks(rank_) ? route->node_masks.Resize(n) : nullptr;
  // A chunk that is not full is the last of a leaf, and a long segment has so many occurrences.
  const int64_t partial = n / kLongSegment * owned_leaves_.size();
  requester.chunks = route->chunk_list.Resize(std::min(n, n / kChunk + partial));
  requester.segments = route->segment_list.Resize(n);
  requester.direct = ranks_ == 1 ? route->direct.Resize(n) : nullptr;
  requester.node_of_leaf = node_of_leaf_.data();
  requester.first_leaf = static_cast<int32_t>(owned_leaves_.begin);
}

void IdRouter::EnqueueRequester(IdRoute* route) {
  const int64_t n = route->occurrences;
  const int64_t cells = ranks_ * layout_->tables();
  const int64_t words = kRequesterCounts + 2 * (cells + 1);
  int64_t* const counts = route->counts.Resize(words);
  FillZero(*stream_, counts, words);
  if (n > 0) {
    const BatchView& batch = route->batch;
    const RequesterView& requester = route->requester;
    const SortKeys keys = KeysIn(&keys_, n);
    MakeKeys(*stream_, batch, keys, values_.Resize(n), counts);
    Sort(n, format_.bits(), keys, requester.sorted_keys, requester.sorted);
    if (requester.node_masks != nullptr) FillZero(*stream_, requester.node_masks, n);
    MarkHeads(*stream_, batch, requester);
    sort_.InclusiveSum(n, requester.unique_number, requester.unique_number);
    sort_.InclusiveSum(n, requester.run_number, requester.run_number);
    if (HasMasks(rank_)) sort_.InclusiveSum(n, requester.segment_number, requester.segment_number);
    PlaceHeads(*stream_, batch, requester, counts);
    MarkChunks(*stream_, batch, requester);
    sort_.InclusiveSum(n, requester.chunk_number, requester.chunk_number);
    PlaceChunks(*stream_, batch, requester, ranks_ == 1, counts);
    if (ranks_ > 1) {
      FindCells(*stream_, batch, requester, ranks_, layout_->tables(), counts,
                counts + kRequesterCounts);
    }
  }
  Copy(*stream_, route->host_counts.Resize(words), counts, words);
}

Status IdRouter::WaitForCounts(IdRoute* route) {
  done_.Record(*stream_);
  ELASTOR_RETURN_IF_ERROR(communicator_->Wait(done_, "the ids of a batch"));
  route->uniques = route->host_counts[kUniques];
  route->segments = route->host_counts[kSegments];
  route->chunks = route->host_counts[kChunks];
  route->listed = ranks_ == 1 ? route->host_counts[kListed] : route->segments;
  return OkStatus();
}

Status IdRouter::BadId(const SparseBatch& batch, int64_t code, const IdRoute& route) const {
  const int64_t order = std::numeric_limits<int32_t>::max() - code;
  int64_t o = order;
  int64_t f;
  if (route.single_id_bags) {
    f = order / batch.rows;
    o = order % batch.rows * batch.fields + f;
  } else {
    const auto bag = std::upper_bound(batch.offsets.begin(), batch.offsets.end(), o) - 1;
    f = (bag - batch.offsets.begin()) % batch.fields;
  }
  return layout_->IdOutsideTable(f, batch.ids[o]);
}

IdRouter::Lists IdRouter::SentLists(const IdRoute& route) const {
  const int64_t tables = layout_->tables();
  const int64_t cells = ranks_ * tables;
  const int64_t* unique_begin = route.host_counts.data() + kRequesterCounts;
  const int64_t* segment_begin = unique_begin + cells + 1;
  Lists lists;
  for (int64_t k = 0; k < cells; ++k) {
    // Ids of replicated tables have this rank as owner, and go to all.
    const int64_t t = k % tables;
    const int64_t from = plan_->replicated(static_cast<int>(t)) ? rank_ * tables + t : k;
    lists.uniques.push_back(unique_begin[from + 1] - unique_begin[from]);
    lists.vectors.push_back(segment_begin[from + 1] - segment_begin[from]);
  }
  return lists;
}

Status IdRouter::ExchangeCounts(const Lists& sent, bool mine_failed, Lists* received,
                                bool* failed) {
  const int64_t tables = layout_->tables();
  const int64_t block = 1 + 2 * tables;  // failed, unique ids by table, vectors by table
  std::vector<int64_t> send(ranks_ * block), receive(ranks_ * block);
  for (int r = 0; r < ranks_; ++r) {
    int64_t* word = send.data() + r * block;
    *word++ = mine_failed;
    word = std::copy_n(sent.uniques.begin() + r * tables, tables, word);
    std::copy_n(sent.vectors.begin() + r * tables, tables, word);
  }
  ELASTOR_RETURN_IF_ERROR(communicator_->host()->AllToAll(Phase::kIdExchange, send.data(),
                                                          receive.data(), block * sizeof(int64_t)));
  *failed = false;
  for (int r = 0; r < ranks_; ++r) {
    const int64_t* word = receive.data() + r * block;
    *failed |= *word != 0;
    received->uniques.insert(received->uniques.end(), word + 1, word + 1 + tables);
    received->vectors.insert(received->vectors.end(), word + 1 + tables, word + block);
  }
  return OkStatus();
}

Status IdRouter::ExchangeKeys(IdRoute* route) {
  const int64_t tables = layout_->tables();
  std::vector<int64_t> send(ranks_, 0), receive(ranks_, 0);
  int64_t sent_items = 0;
  const int64_t* cell = route->cell_upload.data();  // sent_begin, as PlaceCells put it
  const int64_t* item_begin = cell + (route->cells.item_begin - route->cells.sent_begin);
  const int sent_length = HasMasks(rank_) ? 2 : 1;
  int64_t received_words = 0;
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    const int64_t items = cell[(r + 1) * tables] - cell[r * tables];
    const int64_t words =
        (item_begin[(r + 1) * tables] - item_begin[r * tables]) * (HasMasks(r) ? 2 : 1);
    send[r] = items * sent_length * static_cast<int64_t>(sizeof(int64_t));
    receive[r] = words * static_cast<int64_t>(sizeof(int64_t));
    sent_items += items;
    received_words += words;
  }
  int64_t* const words = route->words.Resize(sent_items * sent_length + received_words);
  PackMessages(*stream_, route->cells, route->requester, format_, sent_items, sent_length, words);
  return communicator_->AllToAllV(Phase::kIdExchange, *stream_, words, send,
                                  words + sent_items * sent_length, receive);
}

void IdRouter::EnqueueOwner(IdRoute* route) {
  const int64_t n = route->items;
  OwnerView& owner = route->owner;
  owner.item_masks = route->item_masks.Resize(n);
  owner.item_vectors = route->item_vectors.Resize(n);
  owner.item_owned = route->item_owned.Resize(n);
  owner.sorted_keys = KeysIn(&route->owner_sorted_keys, n);
  owner.sorted = route->owner_sorted.Resize(n);
  owner.owned_number = route->owned_number.Resize(n);
  owner.node_number = route->node_number.Resize(n);
  owner.owned_keys = route->owned_keys.Resize(n);
  owner.node_begin = route->node_begin.Resize(n + 1);
  owner.owned_count = route->counts.data() + kUniques;  // the host has read it
  route->owned = {owner.owned_keys, owner.owned_count, n, format_};
  PlaceVectors(*stream_, route->cells, route->requester, format_, tables_, route->uniques,
               route->vector_offsets.Resize(route->segments));
  if (n == 0) return;
  const SortKeys keys = KeysIn(&keys_, n);
  ReadItems(*stream_, route->cells, route->requester, format_, route->words.data(), n, owner, keys,
            values_.Resize(n));
  sort_.InclusiveSum(n, owner.item_vectors, owner.item_vectors);
  Sort(n, format_.id_bits + format_.table_bits, keys, owner.sorted_keys, owner.sorted);
  MarkOwned(*stream_, n, owner);
  sort_.InclusiveSum(n, owner.owned_number, owner.owned_number);
  sort_.InclusiveSum(n, owner.node_number, owner.node_number);
  PlaceOwned(*stream_, route->cells, tables_, n, owner);
}

}  // namespace elastor::cuda
