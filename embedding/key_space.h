#ifndef ELASTOR_EMBEDDING_KEY_SPACE_H_
#define ELASTOR_EMBEDDING_KEY_SPACE_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/build_config.h"

namespace elastor {

// Every table is cut into 4,096 fixed logical partitions. Checkpoints, resharding and digests work
// by partition, so they do not depend on the ranks.
inline constexpr int64_t kPartitions = 4096;

// Mixes the bits of a key; every key has another result (MurmurHash3's finalizer). Checkpoints
// depend on it.
ELASTOR_HOST_DEVICE inline uint64_t MixKey(int64_t key) {
  auto x = static_cast<uint64_t>(key);
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

// The keys that a table can have, their order and their partitions. No other code reckons with
// these. An array has the keys [0, rows); key k belongs to partition k % 4096. A keyed table has
// every unsigned 64-bit key, whose bits travel as an int64_t; its partition is the low 12 bits of
// MixKey.
struct KeySpace {
  bool keyed = false;
  int64_t rows = 0;  // of an array

  ELASTOR_HOST_DEVICE int64_t PartitionOf(int64_t key) const {
    return keyed ? static_cast<int64_t>(MixKey(key) % kPartitions) : key % kPartitions;
  }
  // Returns the greatest key as an unsigned number. REQUIRES: an array has rows.
  ELASTOR_HOST_DEVICE uint64_t last() const {
    return keyed ? ~uint64_t{0} : static_cast<uint64_t>(rows) - 1;
  }
  ELASTOR_HOST_DEVICE bool Contains(int64_t key) const {
    return static_cast<uint64_t>(key) <= last();
  }
  // Returns the keys of an array that belong to a partition.
  ELASTOR_HOST_DEVICE int64_t RowsIn(int64_t partition) const {
    return partition < rows ? (rows - partition + kPartitions - 1) / kPartitions : 0;
  }
  bool operator==(const KeySpace&) const = default;
};

// The order of keys.
inline bool KeyBefore(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
}

// The key as people read it.
inline std::string KeyText(int64_t key) { return std::to_string(static_cast<uint64_t>(key)); }

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_KEY_SPACE_H_
