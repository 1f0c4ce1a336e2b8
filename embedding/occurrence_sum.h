#ifndef ELASTOR_EMBEDDING_OCCURRENCE_SUM_H_
#define ELASTOR_EMBEDDING_OCCURRENCE_SUM_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/leaf_stack.h"
#include "core/kernels/row_sums.h"
#include "embedding/row_math.h"
#include "embedding/unique_ids.h"
#include "embedding/wire_format.h"

namespace elastor {

// Occurrences summed at a time within a leaf.
inline constexpr int64_t kOccurrenceChunk = 32;

// Sums the bag gradients of one id over its occurrences: within a leaf in order, in chunks of
// kOccurrenceChunk each from +0, the chunks' sums in order; over leaves along the tree. No gradient
// is -0 (UnpoolGradients), so a single gradient is its own sum. With a wire format the sums over
// leaves and nodes are rounded to it. Each thread has its own object.
template <typename T>
class OccurrenceSum {
 public:
  // gradients: [row][feature], what Occurrence::offset points into. width: the longest vector.
  OccurrenceSum(const T* gradients, int64_t width, WireFormat format)
      : gradients_(gradients),
        stride_(width),
        format_(format),
        scratch_(width * LeafStack<int64_t>::kMaxDepth) {}

  // Sets result to the sum over `occurrences`. REQUIRES: their leaves lie below one node of the
  // tree, and there is at least one.
  void Sum(std::span<const Occurrence> occurrences, int64_t width, T* result) {
    if (occurrences.size() == 2 && format_ == WireFormat::kFloat32) {
      for (const Occurrence& occurrence : occurrences) PrefetchAhead(occurrence, width);
      return Add(width, gradients_ + occurrences[0].offset, gradients_ + occurrences[1].offset,
                 result);
    }
    LeafStack<int64_t> stack;
    const T* sums[LeafStack<int64_t>::kMaxDepth];
    const auto room_for = [&](int i) { return i == 0 ? result : scratch_.data() + i * stride_; };
    const auto add_last = [&] {
      const int left = stack.size() - 1;
      T* const sum = room_for(left);
      Add(width, sums[left], sums[left + 1], sum);
      RoundToWire(format_, width, sum);
      sums[left] = sum;
    };
    for (size_t begin = 0; begin < occurrences.size();) {
      const uint32_t leaf = occurrences[begin].leaf;
      size_t end = begin + 1;
      while (end < occurrences.size() && occurrences[end].leaf == leaf) ++end;
      while (stack.MergesBefore(leaf)) add_last();
      const int top = stack.Push(leaf);
      sums[top] = SumLeaf(occurrences.subspan(begin, end - begin), width, room_for(top));
      begin = end;
    }
    while (stack.MergesAtEnd()) add_last();
    if (sums[0] != result) std::copy_n(sums[0], width, result);
  }

  // Prefetches gradients of later occurrences, including those of the following ids, which lie
  // behind.
  void PrefetchAhead(const Occurrence& occurrence, int64_t width) const {
    PrefetchRow(gradients_ + (&occurrence)[kOccurrencePadding].offset, width);
  }

 private:
  // Returns the address of the sum: the only gradient itself, or `sum`.
  const T* SumLeaf(std::span<const Occurrence> occurrences, int64_t width, T* sum) {
    if (occurrences.size() == 1) {
      PrefetchAhead(occurrences[0], width);
      const T* const gradient = gradients_ + occurrences[0].offset;
      if (format_ == WireFormat::kFloat32) return gradient;
      std::copy_n(gradient, width, sum);
      RoundToWire(format_, width, sum);
      return sum;
    }
    SumChunk(occurrences.first(std::min<size_t>(occurrences.size(), kOccurrenceChunk)), width, sum);
    for (size_t begin = kOccurrenceChunk; begin < occurrences.size(); begin += kOccurrenceChunk) {
      const size_t count = std::min<size_t>(occurrences.size() - begin, kOccurrenceChunk);
      SumChunk(occurrences.subspan(begin, count), width, scratch_.data());
      AddTo(width, scratch_.data(), sum);
    }
    RoundToWire(format_, width, sum);
    return sum;
  }

  // The sum from +0 is the sum from the first on, because no gradient is -0.
  void SumChunk(std::span<const Occurrence> occurrences, int64_t width, T* sum) const {
    const T* gradients[kOccurrenceChunk];
    const T* ahead[kOccurrenceChunk];
    for (size_t i = 0; i < occurrences.size(); ++i) {
      gradients[i] = gradients_ + occurrences[i].offset;
      ahead[i] = gradients_ + (&occurrences[i])[kOccurrencePadding].offset;
    }
    RowSums<T>().sum(gradients, static_cast<int64_t>(occurrences.size()), ahead, width, sum);
  }

  const T* gradients_;
  int64_t stride_;
  WireFormat format_;
  std::vector<T> scratch_;  // the sum of a chunk, then the stack's sums from the second on
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_OCCURRENCE_SUM_H_
