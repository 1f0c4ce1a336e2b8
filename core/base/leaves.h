#ifndef ELASTOR_CORE_BASE_LEAVES_H_
#define ELASTOR_CORE_BASE_LEAVES_H_

#include <cstdint>

namespace elastor {

// The global batch is cut into V leaves (virtual shards), V a power of two. Leaves, not ranks or
// threads, fix every order of addition, which is why results do not depend on either
// (docs/inside/design.md, "Leaves and the tree").

// Half-open range of integers.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Returns part `part` of [0, total) cut into `parts` nearly equal ranges: [⌊part·total/parts⌋,
// ...). total * parts must fit in 63 bits.
inline Range PartOf(int64_t part, int64_t parts, int64_t total) {
  return {part * total / parts, (part + 1) * total / parts};
}

// Returns the rows of leaf `leaf` in a batch of `rows` real rows. An empty range means the leaf is
// absent.
inline Range RowsOfLeaf(int64_t leaf, int64_t leaves, int64_t rows) {
  return PartOf(leaf, leaves, rows);
}

// Returns the leaves owned by rank `rank` of `ranks`; also used for the leaves of a thread within
// its rank's range.
inline Range LeavesOfRank(int64_t rank, int64_t ranks, int64_t leaves) {
  return PartOf(rank, ranks, leaves);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_LEAVES_H_
