#include "collective/leaf_tree.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/instantiate.h"
#include "core/base/log.h"

namespace elastor {
namespace {

constexpr std::align_val_t kAlignment{64};

// One block of every partial sum fits the first-level cache together with the block being read.
constexpr int64_t kBlockBytes = 1024;

// sum = left + right; sum may be left or right.
template <typename T>
void AddBlock(const T* left, const T* right, int64_t length, T* sum) {
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) sum[i] = left[i] + right[i];
}

// Folds the same `length` <= block elements of all nodes, of which there are two or more.
template <typename T>
void FoldBlock(std::span<const int64_t> leaves, std::span<const T* const> data, int64_t offset,
               int64_t length, T* result) {
  LeafStack<int64_t> stack;
  alignas(64) T blocks[decltype(stack)::kMaxDepth][kBlockBytes / sizeof(T)];
  const T* sums[decltype(stack)::kMaxDepth];
  const auto add_last = [&](T* sum) {
    const int left = stack.size() - 1;
    AddBlock(sums[left], sums[left + 1], length, sum);
    sums[left] = sum;
  };
  for (size_t i = 0; i < leaves.size(); ++i) {
    while (stack.MergesBefore(leaves[i])) add_last(blocks[stack.size() - 1]);
    sums[stack.Push(leaves[i])] = data[i] + offset;
  }
  while (stack.MergesAtEnd()) {
    add_last(stack.size() == 1 ? result + offset : blocks[stack.size() - 1]);
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
TreeFold<T>::TreeFold(const Range& owned, int64_t length)
    : owned_(owned), canonical_(CanonicalNodes(owned)), length_(length) {
  CHECK_GE(length, 0);
}

template <typename T>
T* TreeFold<T>::Push(int64_t leaf) {
  CHECK_GT(leaf, last_leaf_);
  CHECK(leaf >= owned_.begin && leaf < owned_.end)
      << "leaf " << leaf << " outside [" << owned_.begin << ", " << owned_.end << ")";
  if (leaf < node_end_) {
    MergeBefore(leaf);
  } else {
    Finish();
    stack_.Clear();
    const auto node = std::find_if(canonical_.begin(), canonical_.end(),
                                   [&](const Range& range) { return leaf < range.end; });
    node_end_ = node->end;
  }
  stack_.Push(leaf);
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
T* TreeFold<T>::AddTarget(int64_t leaf, int64_t next) {
  CHECK_GT(leaf, last_leaf_);
  if (leaf >= node_end_) return nullptr;
  MergeBefore(leaf);
  // The greater a leaf, the higher is its common ancestor with this one.
  if (!IsAddedBefore(nodes_.back().leaf, leaf, next)) return nullptr;
  last_leaf_ = leaf;
  return nodes_.back().data;
}

template <typename T>
void TreeFold<T>::MergeBefore(int64_t leaf) {
  int merges = 0;
  while (stack_.MergesBefore(leaf)) ++merges;
  MergeLast(merges);
}

template <typename T>
void TreeFold<T>::Finish() {
  int merges = 0;
  while (stack_.MergesAtEnd()) ++merges;
  MergeLast(merges);
}

template <typename T>
void TreeFold<T>::Clear() {
  for (const Node& node : nodes_) free_.push_back(node.data);
  nodes_.clear();
  stack_.Clear();
  last_leaf_ = -1;
  node_end_ = 0;
}

template <typename T>
void TreeFold<T>::MergeLast(int merges) {
  if (merges == 0) return;
  const size_t count = merges + 1;
  const size_t first = nodes_.size() - count;
  int64_t leaves[decltype(stack_)::kMaxDepth];
  const T* data[decltype(stack_)::kMaxDepth];
  for (size_t i = 0; i < count; ++i) {
    leaves[i] = nodes_[first + i].leaf;
    data[i] = nodes_[first + i].data;
    if (i > 0) free_.push_back(nodes_[first + i].data);
  }
  FoldNodes<T>({leaves, count}, {data, count}, length_, nodes_[first].data);
  nodes_.resize(first + 1);
}

std::vector<int64_t> NodeLeaves(int64_t rank, int64_t ranks, int64_t leaves, int64_t rows) {
  std::vector<int64_t> present;
  for (const Range& node : CanonicalNodes(LeavesOfRank(rank, ranks, leaves))) {
    int64_t leaf = node.begin;
    while (leaf < node.end && RowsOfLeaf(leaf, leaves, rows).size() == 0) ++leaf;
    if (leaf < node.end) present.push_back(leaf);
  }
  return present;
}

template class TreeFold<float>;
template class TreeFold<double>;
ELASTOR_INSTANTIATE(FoldNodes, float, double)

}  // namespace elastor
