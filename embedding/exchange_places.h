#ifndef ELASTOR_EMBEDDING_EXCHANGE_PLACES_H_
#define ELASTOR_EMBEDDING_EXCHANGE_PLACES_H_

#include <cstdint>
#include <vector>

#include "core/base/leaves.h"
#include "embedding/embedding_layout.h"
#include "embedding/shard_plan.h"

namespace elastor {

// Where the vectors of one batch lie in the arrays that ranks exchange, on the host and on the
// device. A *cell* is the part of one table that this rank exchanges with one rank; cells are
// numbered rank * tables + table, where `rank` is the other rank. Rows that this rank both requests
// and owns are in its own cells.

// Returns the canonical nodes of every rank's leaves, by rank. A rank has at most 64, so that the
// nodes in which an id occurs fit into a mask of 64 bits. REQUIRES: leaves >= ranks.
std::vector<std::vector<Range>> NodesOfRanks(int ranks, int64_t leaves);
// Returns the number of the node in which each leaf lies, from the first leaf of `nodes` on.
std::vector<int32_t> NodeOfLeaf(const std::vector<Range>& nodes);

// The sizes, in elements, of an array of vectors and of its parts: [sent to other ranks, in rank
// order][kept][received, in rank order].
struct VectorExchange {
  std::vector<int64_t> send, receive;                  // by rank, 0 for this one
  std::vector<int64_t> send_vectors, receive_vectors;  // likewise: how many vectors these are
  int64_t sent = 0, kept = 0, received = 0;
  int64_t total() const { return sent + kept + received; }
};

// What a rank's batch asks of the ranks, by rank, this one included.
struct RouteDemand {
  std::vector<int64_t> keys;   // on the list to each rank
  std::vector<int64_t> words;  // of 8 bytes, of the message with the list
  VectorExchange rows;         // what it receives
  VectorExchange gradients;    // what it sends
  int64_t unique_ids = 0;
  int64_t occurrences = 0;
};

// Rows on their way to the ranks that asked for them. The kept part is empty: a rank uses its own
// rows in place, and every rank has the rows of replicated tables.
struct RowPlaces {
  VectorExchange exchange;
  // By cell, the offset of its first row in the part that is sent and in the part that is received;
  // -1 where the cell has no row on its way.
  std::vector<int64_t> sent, received;
  std::vector<int64_t> sent_vectors, received_vectors;  // by cell, the number of rows on their way
};
// sent and received are numbers of rows by cell: the rows that other ranks request from this rank,
// and the rows that it requests from them. Own cells and cells of replicated tables do not count.
RowPlaces PlaceRows(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                    std::vector<int64_t> sent, std::vector<int64_t> received);

// Gradients on their way to the owners of their rows. A replicated table's gradients go to every
// rank: they are computed once, kept, and copied to the parts that are sent.
struct GradientPlaces {
  VectorExchange exchange;
  // By cell, the offset of its first vector in the array: `sent` for the vectors that this rank
  // computes, `received` for the vectors that it sums as an owner.
  std::vector<int64_t> sent, received;
  std::vector<int64_t> sent_vectors, received_vectors;  // by cell, the number of vectors
  struct Copy {
    int64_t from, to, elements;
  };
  std::vector<Copy> copies;
};
// sent and received are numbers of vectors by cell, own cells included.
GradientPlaces PlaceGradients(const EmbeddingLayout& layout, const ShardPlan& plan, int rank,
                              const std::vector<int64_t>& sent,
                              const std::vector<int64_t>& received);

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_EXCHANGE_PLACES_H_
