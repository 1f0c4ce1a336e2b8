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
  Sent& operator+=(const Sent& other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
};

// Which ranks' messages are counted: those to all, or where counts(rank) is true.
struct ToAnyRank {
  bool operator()(int) const { return true; }
};

// AllToAll and AllToAllV. send_bytes: by rank.
template <typename Counts = ToAnyRank>
Sent SentInAllToAll(int rank, std::span<const int64_t> send_bytes, const Counts& counts = {}) {
  Sent sent;
  for (int r = 0; r < static_cast<int>(send_bytes.size()); ++r) {
    if (r == rank || send_bytes[r] == 0 || !counts(r)) continue;
    ++sent.messages;
    sent.bytes += send_bytes[r];
  }
  return sent;
}

template <typename Counts = ToAnyRank>
Sent SentInAllGather(int rank, int ranks, int64_t own_bytes, const Counts& counts = {}) {
  int64_t messages = 0;
  for (int r = 0; own_bytes != 0 && r < ranks; ++r) messages += r != rank && counts(r) ? 1 : 0;
  return {messages, own_bytes * messages};
}

template <typename Counts = ToAnyRank>
Sent SentInBroadcast(int rank, int root, int ranks, int64_t bytes, const Counts& counts = {}) {
  if (bytes == 0) return {};
  int64_t messages = 0;
  for (const int child : PlaceInBroadcast(rank, root, ranks).children) messages += counts(child);
  return {messages, messages * bytes};
}

// Recursive doubling among the ranks below the largest power of two, one message for each of its
// bits. A rank beyond it gives its values to one of these before, and gets the result afterwards.
template <typename Counts = ToAnyRank>
Sent SentInAllReduce(int rank, int ranks, int64_t bytes, const Counts& counts = {}) {
  if (bytes == 0) return {};
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  int64_t messages = 0;
  if (rank >= power) {
    messages = counts(rank - power);
  } else {
    for (int bit = 1; bit < power; bit *= 2) messages += counts(rank ^ bit);
    if (rank + power < ranks) messages += counts(rank + power);
  }
  return {messages, messages * bytes};
}

// Messages without bytes.
inline int64_t SentInBarrier(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_CALL_MESSAGES_H_
