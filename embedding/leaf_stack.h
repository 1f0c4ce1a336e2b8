#ifndef ELASTOR_EMBEDDING_LEAF_STACK_H_
#define ELASTOR_EMBEDDING_LEAF_STACK_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/leaves.h"
#include "embedding/row_math.h"
#include "glog/logging.h"

namespace elastor {

// The maximal nodes of the leaf tree inside `owned`, ascending: what a rank can sum alone. One when
// `owned` is itself a node.
inline std::vector<Range> CanonicalNodes(const Range& owned) {
  std::vector<Range> nodes;
  for (int64_t begin = owned.begin; begin < owned.end;) {
    int64_t size = 1;
    while (begin % (2 * size) == 0 && begin + 2 * size <= owned.end) size *= 2;
    nodes.push_back({begin, begin + size});
    begin += size;
  }
  return nodes;
}

// Adds vectors that stand for ascending leaves (or nodes) along the leaf tree, in place: the sum of
// two lies where the left one lay. A missing child is skipped. Works like a binary counter: the two
// topmost vectors are added once the next leaf lies outside their common ancestor.
template <typename T>
class LeafStack {
 public:
  explicit LeafStack(int64_t length) : length_(length) {}

  // Does the additions that are due before `leaf` arrives; returns how many vectors are left.
  int MakeRoom(int64_t leaf) {
    while (size_ >= 2 && LevelOfCommonAncestor(leaves_[size_ - 2], leaves_[size_ - 1]) <
                             LevelOfCommonAncestor(leaves_[size_ - 1], leaf)) {
      AddTopToNext();
    }
    return size_;
  }
  // REQUIRES: MakeRoom(leaf) was the call before.
  void Push(int64_t leaf, T* vector) {
    DCHECK_LT(size_, kMaxDepth);
    leaves_[size_] = leaf;
    vectors_[size_++] = vector;
  }
  // Afterwards the sum lies in the first vector pushed.
  void Finish() {
    while (size_ >= 2) AddTopToNext();
  }

  // Levels fall from the bottom of the stack to its top, hence its depth is at most log2(V) + 1.
  static constexpr int kMaxDepth = 64;

 private:
  void AddTopToNext() {
    --size_;
    AddTo(length_, vectors_[size_], vectors_[size_ - 1]);
  }

  int64_t length_;
  int size_ = 0;
  std::array<int64_t, kMaxDepth> leaves_;
  std::array<T*, kMaxDepth> vectors_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_LEAF_STACK_H_
