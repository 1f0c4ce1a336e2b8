#ifndef ELASTOR_COLLECTIVE_LEAF_TREE_H_
#define ELASTOR_COLLECTIVE_LEAF_TREE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/leaf_stack.h"
#include "core/base/leaves.h"

namespace elastor {

// Sums over leaves along the leaf tree (core/base/leaf_stack.h) of vectors in the host's memory.

// Folds the leaves' vectors, which arrive in ascending order, to one sum for each canonical node of
// `owned`; with owned = [0, V) that is the tree's root. A lone child passes upward unchanged, bit
// for bit (-0 stays -0: nothing is ever added to an absent sibling). Thread-compatible. A canonical
// node has at most log2(V) + 1 vectors at once; their memory is kept by Clear.
template <typename T>
class TreeFold {
 public:
  TreeFold(const Range& owned, int64_t length);

  // Returns space for the vector of the next leaf, or of a node whose first present leaf is `leaf`:
  // `length` elements, 64-byte aligned, with old contents. The caller fills it before the next
  // call. REQUIRES: leaf is greater than all leaves before it and inside owned.
  T* Push(int64_t leaf);
  // Returns the newest sum if the leaf's vector will be added to it whatever follows, else nullptr;
  // after nullptr call Push. A kernel may then add the vector to that sum itself, rounding each
  // element before the addition. The result is the same as with Push. REQUIRES: as Push; all later
  // leaves are `next` or greater.
  T* AddTarget(int64_t leaf, int64_t next);
  // Does the remaining additions. REQUIRES: the next call is nodes or Clear.
  void Finish();
  void Clear();  // forgets all nodes, keeps the memory

  struct Node {
    int64_t leaf;  // first present leaf
    T* data;
  };
  // After Finish: returns the remaining canonical nodes, ascending. There is one if `owned` is one
  // node of the tree.
  std::span<const Node> nodes() const { return nodes_; }

 private:
  struct Free {
    void operator()(T* buffer) const;
  };

  void MergeBefore(int64_t leaf);
  // The last merges + 1 of nodes_ become one.
  void MergeLast(int merges);

  Range owned_;
  std::vector<Range> canonical_;
  int64_t length_;
  int64_t last_leaf_ = -1;
  int64_t node_end_ = 0;      // end of the canonical node that holds last_leaf_
  LeafStack<int64_t> stack_;  // the vectors in that node, the last ones of nodes_
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<T, Free>> buffers_;
  std::vector<T*> free_;
};

// Does the same fold on nodes of `length` elements that are complete in memory: writes their root
// to `result`, in one pass over the data, block by block, without modifying them. leaves: first
// present leaves, ascending, of all present nodes below one node of the tree ([0, V), or one node
// of NodeLeaves). result may be one of data. Without nodes the result is +0. Ranges of elements may
// be folded by different threads.
template <typename T>
void FoldNodes(std::span<const int64_t> leaves, std::span<const T* const> data, int64_t length,
               T* result);

// Returns the first present leaves of the canonical nodes that `rank` ends up with for a batch of
// `rows` rows. Every rank computes the same ones, so that nothing about the nodes has to be sent.
std::vector<int64_t> NodeLeaves(int64_t rank, int64_t ranks, int64_t leaves, int64_t rows);

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_LEAF_TREE_H_
