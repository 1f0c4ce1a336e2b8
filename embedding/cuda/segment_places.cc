#include <algorithm>
#include <numeric>
#include <vector>

#include "embedding/cuda/id_router.h"

// Where every vector of the later exchanges lies: IdRouter::PlaceSegments.

namespace elastor::cuda {
namespace {

// Columns of numbers by segment that go to the device in one copy.
class SegmentTable {
 public:
  // A column's place: Pointer turns it into the address on the device.
  int64_t Add(const std::vector<int64_t>& column) {
    const auto at = static_cast<int64_t>(words_.size());
    words_.insert(words_.end(), column.begin(), column.end());
    return at;
  }
  const std::vector<int64_t>& words() const { return words_; }

 private:
  std::vector<int64_t> words_;
};

// values[0] + ... + values[k - 1] for k = 0 ... size.
std::vector<int64_t> Begins(const std::vector<int64_t>& values) {
  std::vector<int64_t> begins(values.size() + 1, 0);
  std::partial_sum(values.begin(), values.end(), begins.begin() + 1);
  return begins;
}

// Places of vectors of segments: own ones after all that are exchanged with others.
struct Places {
  std::vector<int64_t> at;        // by segment; own ones from 0
  std::vector<int64_t> elements;  // by rank, this one's too
};

Places PlaceByRank(const std::vector<int64_t>& counts, const EmbeddingLayout& layout, int ranks,
                   int rank) {
  Places places;
  int64_t offset = 0;
  for (int r = 0; r < ranks; ++r) {
    int64_t elements = 0;
    for (int64_t t = 0; t < layout.tables(); ++t) {
      places.at.push_back(r == rank ? elements : offset + elements);
      elements += counts[r * layout.tables() + t] * layout.width(t);
    }
    places.elements.push_back(elements);
    if (r != rank) offset += elements;
  }
  return places;
}

// Sizes of an exchange with places of both sides; a rank's own vectors are kept or left out.
VectorExchange SizeExchange(const Places& sent, const Places& received, int rank) {
  VectorExchange exchange;
  exchange.send = sent.elements;
  exchange.receive = received.elements;
  exchange.kept = exchange.send[rank];
  exchange.send[rank] = exchange.receive[rank] = 0;
  exchange.sent = std::accumulate(exchange.send.begin(), exchange.send.end(), int64_t{0});
  exchange.received = std::accumulate(exchange.receive.begin(), exchange.receive.end(), int64_t{0});
  return exchange;
}

// The places of one rank's segments, `offset` further on.
void Shift(int64_t rank, int64_t tables, int64_t offset, std::vector<int64_t>* places) {
  for (int64_t t = 0; t < tables; ++t) (*places)[rank * tables + t] += offset;
}

}  // namespace

void IdRouter::PlaceSegments(const Lists& sent, const Lists& received, IdRoute* route) {
  const int64_t tables = layout_->tables();
  const int64_t segments = ranks_ * tables;
  const int64_t* const unique_begin = route->host_counts.data() + kHomeCounts;
  const int64_t* const vector_begin = unique_begin + segments + 1;

  // Messages.
  std::vector<int64_t> sent_items = sent.uniques;
  std::fill_n(sent_items.begin() + rank_ * tables, tables, 0);
  std::vector<int64_t> sent_unique(segments);
  std::vector<int64_t> word_at, words_per_item, node_leaves;
  int64_t words =
      (HasMasks(rank_) ? 2 : 1) * std::accumulate(sent_items.begin(), sent_items.end(), int64_t{0});
  for (int r = 0; r < ranks_; ++r) {
    word_at.push_back(words);
    words_per_item.push_back(HasMasks(r) ? 2 : 1);
    for (int64_t t = 0; t < tables; ++t) {
      const int owner = plan_->replicated(static_cast<int>(t)) ? rank_ : r;
      sent_unique[r * tables + t] = unique_begin[owner * tables + t];
      if (r != rank_) words += received.uniques[r * tables + t] * words_per_item[r];
    }
    node_leaves.resize(r * 64);
    for (const Range& node : canonical_nodes_[r]) node_leaves.push_back(node.begin);
  }
  node_leaves.resize(ranks_ * 64);

  // Gradients: to every owner, from every home.
  Places gradients_out = PlaceByRank(sent.vectors, *layout_, ranks_, rank_);
  Places gradients_in = PlaceByRank(received.vectors, *layout_, ranks_, rank_);
  route->gradient_exchange = SizeExchange(gradients_out, gradients_in, rank_);
  const VectorExchange& gradients = route->gradient_exchange;
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_) Shift(r, tables, gradients.sent, &gradients_out.at);
    Shift(r, tables, r == rank_ ? gradients.sent : gradients.sent + gradients.kept,
          &gradients_in.at);
  }
  // A replicated table's gradients are computed once, kept, and copied for the other ranks.
  std::vector<int64_t> copy_from, copy_to, copy_elements;
  for (int64_t k = 0; k < segments; ++k) {
    const int64_t t = k % tables;
    if (k / tables == rank_ || !plan_->replicated(static_cast<int>(t))) continue;
    copy_from.push_back(gradients_out.at[rank_ * tables + t]);
    copy_to.push_back(gradients_out.at[k]);
    copy_elements.push_back(sent.vectors[k] * layout_->width(t));
  }

  // Rows: those of replicated tables are everywhere, own ones are used in place.
  std::vector<int64_t> rows_out = received.uniques, rows_in = sent.uniques;
  for (int64_t k = 0; k < segments; ++k) {
    if (k / tables != rank_ && !plan_->replicated(static_cast<int>(k % tables))) continue;
    rows_out[k] = rows_in[k] = 0;
  }
  Places rows_sent = PlaceByRank(rows_out, *layout_, ranks_, rank_);
  const Places rows_received = PlaceByRank(rows_in, *layout_, ranks_, rank_);
  route->row_exchange = SizeExchange(rows_sent, rows_received, rank_);
  for (int64_t k = 0; k < segments; ++k) {
    if (rows_out[k] == 0) rows_sent.at[k] = -1;
  }

  SegmentTable table;
  const int64_t sent_begin_at = table.Add(Begins(sent_items));
  const int64_t sent_unique_at = table.Add(sent_unique);
  const int64_t unique_begin_at =
      table.Add(std::vector<int64_t>(unique_begin, unique_begin + segments + 1));
  const int64_t vector_begin_at =
      table.Add(std::vector<int64_t>(vector_begin, vector_begin + segments + 1));
  const int64_t gradient_at = table.Add(gradients_out.at);
  const int64_t row_at = table.Add(rows_received.at);
  const std::vector<int64_t> item_begin = Begins(received.uniques);
  const std::vector<int64_t> item_vector = Begins(received.vectors);
  const int64_t item_begin_at = table.Add(item_begin);
  const int64_t item_vector_at = table.Add(item_vector);
  const int64_t item_gradient_at = table.Add(gradients_in.at);
  const int64_t item_row_at = table.Add(rows_sent.at);
  const int64_t word_column = table.Add(word_at);
  const int64_t words_per_item_at = table.Add(words_per_item);
  const int64_t node_leaves_at = table.Add(node_leaves);
  const std::vector<int64_t> copy_begin = Begins(copy_elements);
  const int64_t copy_begin_at = table.Add(copy_begin);
  const int64_t copy_from_at = table.Add(copy_from);
  const int64_t copy_to_at = table.Add(copy_to);

  const auto size = static_cast<int64_t>(table.words().size());
  // Free: the call waited for the device after the upload of the batch before.
  std::copy(table.words().begin(), table.words().end(), route->segment_upload.Resize(size));
  int64_t* const base = route->segment_words.Resize(size);
  Copy(*stream_, base, route->segment_upload.data(), size);
  SegmentsView& view = route->segments;
  view.ranks = ranks_;
  view.tables = tables;
  view.rank = rank_;
  view.sent_begin = base + sent_begin_at;
  view.sent_unique = base + sent_unique_at;
  view.unique_begin = base + unique_begin_at;
  view.vector_begin = base + vector_begin_at;
  view.gradient_at = base + gradient_at;
  view.row_at = base + row_at;
  view.item_begin = base + item_begin_at;
  view.item_vector = base + item_vector_at;
  view.item_gradient_at = base + item_gradient_at;
  view.item_row_at = base + item_row_at;
  view.word_at = base + word_column;
  view.words_per_item = base + words_per_item_at;
  view.node_leaves = base + node_leaves_at;
  route->replica_copies = {base + copy_begin_at, base + copy_from_at, base + copy_to_at,
                           static_cast<int64_t>(copy_from.size()), copy_begin.back()};
  route->items = item_begin.back();
  route->owner.node_leaves = route->node_leaves.Resize(item_vector.back());
  route->owner.node_gradients = route->node_gradients.Resize(item_vector.back());
}

}  // namespace elastor::cuda
