#ifndef ELASTOR_COLLECTIVE_CALL_MESSAGES_H_
#define ELASTOR_COLLECTIVE_CALL_MESSAGES_H_

#include <bit>
#include <cstdint>
#include <span>

#include "collective/broadcast_tree.h"

namespace elastor {

// What a rank sends to other ranks in one call (README.md, "Steps and bytes on the wire").
// Communicators record it, Mpi checks that it sent as much, and whoever predicts a job counts by
// it. Empty blocks are not sent.
struct Sent {
  int64_t messages = 0;
  int64_t bytes = 0;
  bool operator==(const Sent&) const = default;
};

// AllToAll and AllToAllV. send_bytes: by rank.
inline Sent SentInAllToAll(int rank, std::span<const int64_t> send_bytes) {
  Sent sent;
  for (int r = 0; r < static_cast<int>(send_bytes.size()); ++r) {
    if (r == rank || send_bytes[r] == 0) continue;
    ++sent.messages;
    sent.bytes += send_bytes[r];
  }
  return sent;
}

inline Sent SentInAllGather(int ranks, int64_t own_bytes) {
  if (own_bytes == 0) return {};
  return {ranks - 1, own_bytes * (ranks - 1)};
}

inline Sent SentInBroadcast(int rank, int root, int ranks, int64_t bytes) {
  if (bytes == 0) return {};
  const auto children = static_cast<int64_t>(PlaceInBroadcast(rank, root, ranks).children.size());
  return {children, children * bytes};
}

// Recursive doubling among the ranks below the largest power of two, one message for each of its
// bits. A rank beyond it gives its values to one of these before, and gets the result afterwards.
inline Sent SentInAllReduce(int rank, int ranks, int64_t bytes) {
  if (bytes == 0) return {};
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  const int64_t messages = rank >= power ? 1
                                         : std::countr_zero(static_cast<unsigned>(power)) +
                                               (rank + power < ranks ? 1 : 0);
  return {messages, messages * bytes};
}

// Messages without bytes.
inline int64_t SentInBarrier(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_CALL_MESSAGES_H_
