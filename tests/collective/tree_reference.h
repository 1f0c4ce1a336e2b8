#ifndef ELASTOR_TESTS_COLLECTIVE_TREE_REFERENCE_H_
#define ELASTOR_TESTS_COLLECTIVE_TREE_REFERENCE_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/leaves.h"

namespace elastor {

// One vector a leaf, of numbers of very different sizes, so that another association of the sum
// gives other bits.
template <typename T>
std::vector<std::vector<T>> MakeLeaves(int64_t leaves, int64_t length) {
  std::mt19937_64 random(20240601);
  std::vector<std::vector<T>> values(leaves, std::vector<T>(length));
  for (auto& leaf : values) {
    for (T& value : leaf) {
      const uint64_t bits = random();
      const double mantissa = 1 + static_cast<double>(bits >> 11) * 0x1p-53;
      value = static_cast<T>(std::ldexp(bits & 1 ? mantissa : -mantissa, (bits >> 1) % 12));
    }
  }
  return values;
}

inline std::vector<int64_t> PresentLeaves(int64_t leaves, int64_t rows) {
  std::vector<int64_t> present;
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    if (RowsOfLeaf(leaf, leaves, rows).size() > 0) present.push_back(leaf);
  }
  return present;
}

// The law itself: node = left + right, a missing child is skipped. Empty when nothing is present
// in [begin, end).
template <typename T>
std::vector<T> RecursiveFold(const std::vector<std::vector<T>>& values, int64_t rows, int64_t begin,
                             int64_t end) {
  const int64_t leaves = static_cast<int64_t>(values.size());
  if (end - begin == 1) {
    return RowsOfLeaf(begin, leaves, rows).size() > 0 ? values[begin] : std::vector<T>();
  }
  const int64_t middle = (begin + end) / 2;
  std::vector<T> left = RecursiveFold(values, rows, begin, middle);
  const std::vector<T> right = RecursiveFold(values, rows, middle, end);
  if (left.empty()) return right;
  for (size_t i = 0; i < right.size(); ++i) left[i] += right[i];
  return left;
}

// What a careless loop over the leaves computes.
template <typename T>
std::vector<T> ChainFold(const std::vector<std::vector<T>>& values,
                         const std::vector<int64_t>& present) {
  std::vector<T> sum = values[present[0]];
  for (size_t p = 1; p < present.size(); ++p) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[present[p]][i];
  }
  return sum;
}

template <typename T>
bool SameBits(const T* a, const T* b, int64_t length) {
  return length == 0 || std::memcmp(a, b, length * sizeof(T)) == 0;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_COLLECTIVE_TREE_REFERENCE_H_
