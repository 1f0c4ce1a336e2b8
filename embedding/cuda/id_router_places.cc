#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/log.h"
#include "embedding/cuda/id_router.h"

// The places of keys and vectors in the exchanges of a batch, on their way to the device:
// IdRouter::PlaceCells.

namespace elastor::cuda {

// Columns of numbers by cell that go to the device in one copy.
class CellTable {
 public:
  // *column becomes the column's address on the device, once Point is called.
  void Add(const std::vector<int64_t>& values, const int64_t** column) {
    columns_.push_back({static_cast<int64_t>(words_.size()), column});
    words_.insert(words_.end(), values.begin(), values.end());
  }
  const std::vector<int64_t>& words() const { return words_; }
  void Point(const int64_t* base) const {
    for (const Column& column : columns_) *column.address = base + column.at;
  }

 private:
  struct Column {
    int64_t at;
    const int64_t** address;
  };
  std::vector<int64_t> words_;
  std::vector<Column> columns_;
};

namespace {

// values[0] + ... + values[k - 1] for k = 0 ... size.
std::vector<int64_t> Begins(const std::vector<int64_t>& values) {
  std::vector<int64_t> begins(values.size() + 1, 0);
  std::partial_sum(values.begin(), values.end(), begins.begin() + 1);
  return begins;
}

}  // namespace

// Where every item of a message lies, on both sides.
void IdRouter::PlaceMessages(const Lists& sent, const Lists& received, const int64_t* unique_begin,
                             CellTable* table, CellsView* view) const {
  const int64_t tables = layout_->tables();
  std::vector<int64_t> sent_items = sent.uniques;
  std::fill_n(sent_items.begin() + rank_ * tables, tables, 0);
  std::vector<int64_t> sent_unique, word_at, words_per_item, node_leaves;
  int64_t words =
      (HasMasks(rank_) ? 2 : 1) * std::accumulate(sent_items.begin(), sent_items.end(), int64_t{0});
  for (int r = 0; r < ranks_; ++r) {
    word_at.push_back(words);
    words_per_item.push_back(HasMasks(r) ? 2 : 1);
    for (int64_t t = 0; t < tables; ++t) {
      const int owner = plan_->replicated(static_cast<int>(t)) ? rank_ : r;
      sent_unique.push_back(unique_begin[owner * tables + t]);
      if (r != rank_) words += received.uniques[r * tables + t] * words_per_item[r];
    }
    node_leaves.resize(r * 64);
    for (const Range& node : canonical_nodes_[r]) node_leaves.push_back(node.begin);
  }
  node_leaves.resize(ranks_ * 64);
  table->Add(Begins(sent_items), &view->sent_begin);  // first: ExchangeKeys reads it
  table->Add(sent_unique, &view->sent_unique);
  table->Add(word_at, &view->word_at);
  table->Add(words_per_item, &view->words_per_item);
  table->Add(node_leaves, &view->node_leaves);
}

void IdRouter::PlaceGradients(const Lists& sent, const Lists& received, CellTable* table,
                              IdRoute* route) const {
  const GradientPlaces places =
      elastor::PlaceGradients(*layout_, *plan_, rank_, sent.vectors, received.vectors);
  route->gradient_exchange = places.exchange;
  std::vector<int64_t> from, to, elements;
  for (const GradientPlaces::Copy& copy : places.copies) {
    from.push_back(copy.from);
    to.push_back(copy.to);
    elements.push_back(copy.elements);
  }
  const std::vector<int64_t> begins = Begins(elements);
  Pieces& copies = route->replica_copies;
  copies.count = static_cast<int64_t>(from.size());
  copies.elements = begins.back();
  table->Add(places.sent, &route->cells.gradient_at);
  table->Add(places.received, &route->cells.item_gradient_at);
  table->Add(begins, &copies.begin);
  table->Add(from, &copies.from);
  table->Add(to, &copies.to);
}

void IdRouter::PlaceCells(const Lists& sent, const Lists& received, IdRoute* route) {
  const int64_t cells = ranks_ * layout_->tables();
  const int64_t* const unique_begin = route->host_counts.data() + kRequesterCounts;
  const int64_t* const segment_begin = unique_begin + cells + 1;
  CellsView& view = route->cells;
  view.ranks = ranks_;
  view.tables = layout_->tables();
  view.rank = rank_;
  CellTable table;
  PlaceMessages(sent, received, unique_begin, &table, &view);
  PlaceGradients(sent, received, &table, route);
  const RowPlaces rows =
      elastor::PlaceRows(*layout_, *plan_, rank_, received.uniques, sent.uniques);
  route->row_exchange = rows.exchange;
  table.Add(rows.sent, &view.item_row_at);
  table.Add(rows.received, &view.row_at);
  const std::vector<int64_t> item_begin = Begins(received.uniques);
  const std::vector<int64_t> item_vector = Begins(received.vectors);
  table.Add({unique_begin, unique_begin + cells + 1}, &view.unique_begin);
  table.Add({segment_begin, segment_begin + cells + 1}, &view.segment_begin);
  table.Add(item_begin, &view.item_begin);
  table.Add(item_vector, &view.item_vector);
  CHECK_LT(item_vector.back(), std::numeric_limits<int32_t>::max())
      << "ids of one batch that a rank owns, on all ranks";  // no fewer than items
  route->items = item_begin.back();
  route->owner.node_leaves = route->node_leaves.Resize(item_vector.back());
  route->owner.node_gradients = route->node_gradients.Resize(item_vector.back());

  const auto size = static_cast<int64_t>(table.words().size());
  // The memory is free: the call has waited for the device since the upload of the batch before.
  std::copy(table.words().begin(), table.words().end(), route->cell_upload.Resize(size));
  Copy(*stream_, route->cell_words.Resize(size), route->cell_upload.data(), size);
  table.Point(route->cell_words.data());
}

}  // namespace elastor::cuda
