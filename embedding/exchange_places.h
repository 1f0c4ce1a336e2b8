#ifndef ELASTOR_EMBEDDING_EXCHANGE_PLACES_H_
#define ELASTOR_EMBEDDING_EXCHANGE_PLACES_H_

#include <cstdint>
#include <vector>

#include "core/base/leaves.h"
#include "embedding/embedding_layout.h"
#include "embedding/shard_plan.h"

namespace elastor {

// Where the vectors of one batch lie in the arrays that ranks exchange, on the host and on the
// device. A *segment* is what this rank exchanges with one rank of one table; segments are numbered
// rank * tables + table, where `rank` is the other one. This rank's own segments are those of ids
// that it needs and owns.

// The canonical nodes of every rank's leaves, by rank. At most 64 each, so that the nodes in which
// an id occurs fit into a mask of 64 bits. REQUIRES: leaves >= ranks.
std::vector<std::vector<Range>> NodesOfRanks(int ranks, int64_t leaves);
// By leaf, from the first one on: the number of the node it lies in.
std::vector<int32_t> NodeOfLeaf(const std::vector<Range>& nodes);

// The parts of an array of vectors, in elements: [sent to other ranks, in rank order][kept]
// [received, in rank order].
struct VectorExchange {
  std::vector<int64_t> send, receive;  // by rank, 0 for this one
  int64_t sent = 0, kept = 0, received = 0;
  int64_t total() const { return sent + kept + received; }
};

// Rows on their way to the ranks that asked for them. Nothing is kept: own rows are used in place,
// and every rank has those of replicated tables.
struct RowPlaces {
  VectorExchange exchange;
  // By segment, where its first row is sent from and where it arrives, from the beginning of the
  // part; -1: none.
  std::vector<int64_t> sent, received;
};
// Rows by segment: those that other ranks ask of this one, and those it asks of them.
RowPlaces PlaceRows(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                    std::vector<int64_t> sent, std::vector<int64_t> received);

// Gradients on their way to the owners of their rows. Those of a replicated table go to every rank;
// they are computed once, kept, and copied to where they are sent from.
struct GradientPlaces {
  VectorExchange exchange;
  // By segment, where its first vector lies in the array, before and after the exchange.
  std::vector<int64_t> sent, received;
  struct Copy {
    int64_t from, to, elements;
  };
  std::vector<Copy> copies;
};
// Vectors by segment, own ones included.
GradientPlaces PlaceGradients(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                              const std::vector<int64_t>& sent,
                              const std::vector<int64_t>& received);

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_EXCHANGE_PLACES_H_
