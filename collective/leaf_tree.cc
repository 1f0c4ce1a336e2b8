#include "collective/leaf_tree.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "glog/logging.h"

namespace elastor {
namespace {

// "No leaf follows": its ancestor with any other leaf is higher than every node of the tree.
constexpr int64_t kNoLeaf = std::numeric_limits<int64_t>::max();
constexpr std::align_val_t kAlignment{64};

// Levels of the tree that FoldNodes can hold: V up to 2^24.
constexpr int kMaxLevels = 25;
// One block of every level fits the first-level cache together with the block being read.
constexpr int64_t kBlockBytes = 1024;

// sum = left + right; sum may be left or right.
template <typename T>
void AddBlock(const T* left, const T* right, int64_t length, T* sum) {
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) sum[i] = left[i] + right[i];
}

// True when the neighbours a < b are to be added before `next` arrives: their common ancestor does
// not contain it.
bool CompleteBefore(int64_t a, int64_t b, int64_t next) {
  return LevelOfCommonAncestor(a, b) < LevelOfCommonAncestor(b, next);
}

// Folds the same `length` <= block elements of all nodes.
template <typename T>
void FoldBlock(std::span<const int64_t> leaves, std::span<const T* const> data, int64_t offset,
               int64_t length, T* result) {
  alignas(64) T sums[kMaxLevels][kBlockBytes / sizeof(T)];
  const T* stack[kMaxLevels];
  int64_t stack_leaves[kMaxLevels];
  int depth = 0;
  const size_t count = leaves.size();
  for (size_t i = 0; i < count; ++i) {
    CHECK_LT(depth, kMaxLevels);
    stack[depth] = data[i] + offset;
    stack_leaves[depth++] = leaves[i];
    const int64_t next = i + 1 < count ? leaves[i + 1] : kNoLeaf;
    while (depth > 1 && CompleteBefore(stack_leaves[depth - 2], stack_leaves[depth - 1], next)) {
      T* const sum = depth == 2 && next == kNoLeaf ? result + offset : sums[depth - 2];
      AddBlock(stack[depth - 2], stack[depth - 1], length, sum);
      stack[depth - 2] = sum;
      --depth;
    }
  }
}

}  // namespace

template <typename T>
void FoldNodes(std::span<const int64_t> leaves, std::span<const T* const> data, int64_t length,
               T* result) {
  CHECK_EQ(leaves.size(), data.size());
  if (length == 0) return;
  if (leaves.empty()) {
    std::fill(result, result + length, T{0});
  } else if (leaves.size() == 1) {
    if (result != data[0]) std::memcpy(result, data[0], length * sizeof(T));
  } else if (leaves.size() == 2) {
    AddBlock(data[0], data[1], length, result);
  } else {
    constexpr int64_t kBlock = kBlockBytes / sizeof(T);
    for (int64_t offset = 0; offset < length; offset += kBlock) {
      FoldBlock(leaves, data, offset, std::min(kBlock, length - offset), result);
    }
  }
}

template <typename T>
void TreeFold<T>::Free::operator()(T* buffer) const {
  ::operator delete(buffer, kAlignment);
}

template <typename T>
TreeFold<T>::TreeFold(const Range& owned, int64_t length) : owned_(owned), length_(length) {
  CHECK_GE(length, 0);
}

template <typename T>
T* TreeFold<T>::Push(int64_t leaf) {
  CHECK_GT(leaf, last_leaf_);
  CHECK(leaf >= owned_.begin && leaf < owned_.end)
      << "leaf " << leaf << " outside [" << owned_.begin << ", " << owned_.end << ")";
  MergeBefore(leaf);
  if (free_.empty()) {
    buffers_.emplace_back(static_cast<T*>(::operator new(length_ * sizeof(T), kAlignment)));
    free_.push_back(buffers_.back().get());
  }
  nodes_.push_back({leaf, free_.back()});
  free_.pop_back();
  last_leaf_ = leaf;
  return nodes_.back().data;
}

template <typename T>
T* TreeFold<T>::AddTarget(int64_t leaf) {
  CHECK_GT(leaf, last_leaf_);
  const bool sibling_is_top = leaf % 2 == 1 && last_leaf_ == leaf - 1;
  if (!sibling_is_top || leaf >= owned_.end) return nullptr;
  last_leaf_ = leaf;
  return nodes_.back().data;
}

template <typename T>
void TreeFold<T>::Finish() {
  MergeBefore(kNoLeaf);
}

template <typename T>
void TreeFold<T>::Clear() {
  for (const Node& node : nodes_) free_.push_back(node.data);
  nodes_.clear();
  last_leaf_ = -1;
}

// The levels of the common ancestors of neighbours fall from the bottom of the list to its top, so
// the nodes to be added are the last ones, and they fold into one. When an ancestor reaches outside
// `owned`, so do all below it.
template <typename T>
void TreeFold<T>::MergeBefore(int64_t next_leaf) {
  size_t first = nodes_.empty() ? 0 : nodes_.size() - 1;
  while (first > 0) {
    const int64_t a = nodes_[first - 1].leaf;
    const int64_t b = nodes_[first].leaf;
    if (!CompleteBefore(a, b, next_leaf) || !AncestorInside(a, b, owned_)) break;
    --first;
  }
  const size_t count = nodes_.size() - first;
  if (count < 2) return;
  int64_t leaves[kMaxLevels];
  const T* data[kMaxLevels];
  CHECK_LE(count, static_cast<size_t>(kMaxLevels));
  for (size_t i = 0; i < count; ++i) {
    leaves[i] = nodes_[first + i].leaf;
    data[i] = nodes_[first + i].data;
    if (i > 0) free_.push_back(nodes_[first + i].data);
  }
  FoldNodes<T>({leaves, count}, {data, count}, length_, nodes_[first].data);
  nodes_.resize(first + 1);
}

std::vector<int64_t> NodeLeaves(int64_t rank, int64_t ranks, int64_t leaves, int64_t rows) {
  const Range owned = LeavesOfRank(rank, ranks, leaves);
  std::vector<int64_t> nodes;
  const auto merge_before = [&](int64_t next) {
    while (nodes.size() > 1) {
      const int64_t a = nodes[nodes.size() - 2];
      const int64_t b = nodes.back();
      if (!CompleteBefore(a, b, next) || !AncestorInside(a, b, owned)) break;
      nodes.pop_back();
    }
  };
  for (int64_t leaf = owned.begin; leaf < owned.end; ++leaf) {
    if (RowsOfLeaf(leaf, leaves, rows).size() == 0) continue;
    merge_before(leaf);
    nodes.push_back(leaf);
  }
  merge_before(kNoLeaf);
  return nodes;
}

template class TreeFold<float>;
template class TreeFold<double>;
template void FoldNodes<float>(std::span<const int64_t>, std::span<const float* const>, int64_t,
                               float*);
template void FoldNodes<double>(std::span<const int64_t>, std::span<const double* const>, int64_t,
                                double*);

}  // namespace elastor
