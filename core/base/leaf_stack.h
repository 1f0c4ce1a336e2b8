#ifndef ELASTOR_CORE_BASE_LEAF_STACK_H_
#define ELASTOR_CORE_BASE_LEAF_STACK_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/build_config.h"
#include "core/base/leaves.h"

namespace elastor {

// The law of sums over leaves: they follow one binary tree over the V leaves, node = left + right,
// a missing child is skipped, a lone child is passed up unchanged (docs/inside/design.md, "Leaves
// and the tree"). Every such sum, on the host and on the device, asks this file which additions
// come when; tests/mutation puts mistakes into it and has the tests of every sum fail.

// Returns whether the sums over two neighbouring nodes are added before the leaf `next` arrives.
// They are if their common ancestor does not contain it. left < right < next are leaves of the
// three nodes, in [0, V). The highest bit in which two leaves differ tells the level of their
// ancestor; it is 1 in the greater leaf. So `right` has a 1 in the highest bit in which it differs
// from `left`, and a 0 in the highest in which it differs from `next`. These are two bits, and the
// greater difference has the higher ancestor.
template <typename Leaf>
ELASTOR_HOST_DEVICE constexpr bool IsAddedBefore(Leaf left, Leaf right, Leaf next) {
  return (left ^ right) < (right ^ next);
}

// Decides what is added when vectors arrive in ascending order of the leaves (or nodes) that they
// stand for. The caller keeps the partial sums, numbered like a stack from 0; this class keeps a
// leaf of each:
//
//   for each leaf:
//     while (stack.MergesBefore(leaf)) sum[stack.size() - 1] += sum[stack.size()];
//     sum[stack.Push(leaf)] = the leaf's vector;
//   while (stack.MergesAtEnd()) sum[stack.size() - 1] += sum[stack.size()];
//
// Then sum[0] is the sum. Leaf is a signed integer.
template <typename Leaf>
class LeafStack {
 public:
  // The ancestors of neighbouring sums are lower the nearer the sums are to the stack's top, and
  // there are fewer levels than bits. So no tree has more partial sums at once.
  static constexpr int kMaxDepth = 8 * sizeof(Leaf);

  ELASTOR_HOST_DEVICE int size() const { return size_; }

  // Returns whether, before `next` arrives, the last sum is to be added to the one before it; if
  // so, takes it off the stack.
  ELASTOR_HOST_DEVICE bool MergesBefore(Leaf next) {
    if (size_ < 2 || !IsAddedBefore(leaves_[size_ - 2], leaves_[size_ - 1], next)) return false;
    --size_;
    return true;
  }
  // Does the same when no leaf follows.
  ELASTOR_HOST_DEVICE bool MergesAtEnd() {
    if (size_ < 2) return false;
    --size_;
    return true;
  }
  // Returns the number of the new leaf's sum. REQUIRES: MergesBefore(leaf) has just returned false.
  ELASTOR_HOST_DEVICE int Push(Leaf leaf) {
    leaves_[size_] = leaf;
    return size_++;
  }
  ELASTOR_HOST_DEVICE void Clear() { size_ = 0; }

 private:
  int size_ = 0;
  Leaf leaves_[kMaxDepth];
};

// The largest node of the tree that begins with leaf `begin`, ends at `end` or before and has at
// most `largest` leaves.
inline Range NodeFrom(int64_t begin, int64_t end, int64_t largest) {
  end = std::min(end, begin + largest);
  int64_t size = 1;
  while (begin % (2 * size) == 0 && begin + 2 * size <= end) size *= 2;
  return {begin, begin + size};
}

// The maximal nodes of the tree inside `owned`, ascending: the sums that a rank or thread with
// these leaves can make alone. A node of another rank may lie between two of them, so their owner
// does not add them. There is one node if `owned` is itself a node, and at most about 2 log2 of its
// number of leaves.
inline std::vector<Range> CanonicalNodes(const Range& owned) {
  std::vector<Range> nodes;
  for (int64_t begin = owned.begin; begin < owned.end; begin = nodes.back().end) {
    nodes.push_back(NodeFrom(begin, owned.end, owned.size()));
  }
  return nodes;
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_LEAF_STACK_H_
