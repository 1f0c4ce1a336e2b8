#include "embedding/exchange_places.h"

#include <numeric>
#include <utility>

#include "core/base/leaf_stack.h"
#include "core/base/log.h"

namespace elastor {
namespace {

// Offsets of cells that lie one after another, rank by rank. This rank's own cells are counted
// apart, from 0.
struct Sequence {
  std::vector<int64_t> at;        // by cell
  std::vector<int64_t> elements;  // by rank, this one's too
  std::vector<int64_t> vectors;   // likewise
};

Sequence PlaceInSequence(const EmbeddingLayout& layout, int ranks, int rank,
                         const std::vector<int64_t>& vectors) {
  Sequence sequence;
  int64_t offset = 0;
  for (int r = 0; r < ranks; ++r) {
    int64_t elements = 0, count = 0;
    for (int64_t t = 0; t < layout.tables(); ++t) {
      sequence.at.push_back(r == rank ? elements : offset + elements);
      elements += vectors[r * layout.tables() + t] * layout.width(t);
      count += vectors[r * layout.tables() + t];
    }
    sequence.elements.push_back(elements);
    sequence.vectors.push_back(count);
    if (r != rank) offset += elements;
  }
  return sequence;
}

VectorExchange SizeExchange(const Sequence& sent, const Sequence& received, int rank) {
  VectorExchange exchange;
  exchange.send = sent.elements;
  exchange.receive = received.elements;
  exchange.send_vectors = sent.vectors;
  exchange.receive_vectors = received.vectors;
  exchange.kept = exchange.send[rank];
  exchange.send[rank] = exchange.receive[rank] = 0;
  exchange.send_vectors[rank] = exchange.receive_vectors[rank] = 0;
  exchange.sent = std::accumulate(exchange.send.begin(), exchange.send.end(), int64_t{0});
  exchange.received = std::accumulate(exchange.receive.begin(), exchange.receive.end(), int64_t{0});
  return exchange;
}

}  // namespace

std::vector<std::vector<Range>> NodesOfRanks(int ranks, int64_t leaves) {
  CHECK_GE(leaves, ranks) << "every rank needs a leaf: raise parallel.virtual_shards";
  std::vector<std::vector<Range>> nodes;
  for (int r = 0; r < ranks; ++r) {
    nodes.push_back(CanonicalNodes(LeavesOfRank(r, ranks, leaves)));
    CHECK_LE(nodes.back().size(), size_t{64});
  }
  return nodes;
}

std::vector<int32_t> NodeOfLeaf(const std::vector<Range>& nodes) {
  std::vector<int32_t> node_of_leaf;
  for (size_t n = 0; n < nodes.size(); ++n) {
    node_of_leaf.insert(node_of_leaf.end(), nodes[n].size(), static_cast<int32_t>(n));
  }
  return node_of_leaf;
}

RowPlaces PlaceRows(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                    std::vector<int64_t> sent, std::vector<int64_t> received) {
  const int64_t tables = layout.tables();
  for (int64_t k = 0; k < plan.ranks() * tables; ++k) {
    if (k / tables != rank && !plan.replicated(static_cast<int>(k % tables))) continue;
    sent[k] = received[k] = 0;
  }
  Sequence out = PlaceInSequence(layout, plan.ranks(), rank, sent);
  Sequence in = PlaceInSequence(layout, plan.ranks(), rank, received);
  for (int64_t k = 0; k < plan.ranks() * tables; ++k) {
    if (sent[k] == 0) out.at[k] = -1;
    if (received[k] == 0) in.at[k] = -1;
  }
  return {.exchange = SizeExchange(out, in, rank),
          .sent = std::move(out.at),
          .received = std::move(in.at),
          .sent_vectors = std::move(sent),
          .received_vectors = std::move(received)};
}

GradientPlaces PlaceGradients(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                              const std::vector<int64_t>& sent,
                              const std::vector<int64_t>& received) {
  const int64_t tables = layout.tables();
  Sequence out = PlaceInSequence(layout, plan.ranks(), rank, sent);
  Sequence in = PlaceInSequence(layout, plan.ranks(), rank, received);
  GradientPlaces places{.exchange = SizeExchange(out, in, rank),
                        .sent = std::move(out.at),
                        .received = std::move(in.at),
                        .sent_vectors = sent,
                        .received_vectors = received,
                        .copies = {}};
  const int64_t kept_at = places.exchange.sent;
  const int64_t received_at = kept_at + places.exchange.kept;
  for (int64_t k = 0; k < plan.ranks() * tables; ++k) {
    const bool own = k / tables == rank;
    if (own) places.sent[k] += kept_at;
    places.received[k] += own ? kept_at : received_at;
  }
  for (int64_t k = 0; k < plan.ranks() * tables; ++k) {
    const int64_t t = k % tables;
    if (k / tables == rank || sent[k] == 0 || !plan.replicated(static_cast<int>(t))) continue;
    places.copies.push_back(
        {places.sent[rank * tables + t], places.sent[k], sent[k] * layout.width(t)});
  }
  return places;
}

}  // namespace elastor
