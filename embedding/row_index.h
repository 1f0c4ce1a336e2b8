#ifndef ELASTOR_EMBEDDING_ROW_INDEX_H_
#define ELASTOR_EMBEDDING_ROW_INDEX_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/build_config.h"
#include "core/base/leaves.h"
#include "embedding/key_space.h"

namespace elastor {

// Finds the row of a key among the rows of an array that one rank stores, on the host and on the
// device. Rows of keyed tables are found by key_slots.h.
//
// The partitions that the rank stores are numbered in ascending order; with n of them, key =
// quotient * 4096 + partition lies at index quotient * n + number(partition). So the rows have no
// holes between them, and with all partitions index = key: ids sorted by frequency keep their hot
// rows together.

// A view of StoredPartitions, or of its copy on the device.
struct RowIndex {
  const int32_t* numbers = nullptr;     // by partition; -1: not here. Null when all are here
  const int32_t* partitions = nullptr;  // by number. Null when all are here
  int64_t count = kPartitions;          // number of partitions here

  // REQUIRES: the key's partition is here.
  ELASTOR_HOST_DEVICE int64_t IndexOf(int64_t key) const {
    if (numbers == nullptr) return key;
    return key / kPartitions * count + numbers[PartitionOf(key)];
  }
  ELASTOR_HOST_DEVICE static int64_t PartitionOf(int64_t key) {
    return KeySpace().PartitionOf(key);
  }
  ELASTOR_HOST_DEVICE int64_t PartitionAt(int64_t number) const {
    return partitions == nullptr ? number : partitions[number];
  }
  ELASTOR_HOST_DEVICE int64_t KeyOf(int64_t quotient, int64_t number) const {
    return quotient * kPartitions + PartitionAt(number);
  }
  ELASTOR_HOST_DEVICE int64_t KeyAt(int64_t index) const {
    return partitions == nullptr ? index : KeyOf(index / count, index % count);
  }
};

// The partitions of a table that one rank stores.
class StoredPartitions {
 public:
  // partitions: ascending.
  explicit StoredPartitions(std::vector<int32_t> partitions) : partitions_(std::move(partitions)) {
    if (static_cast<int64_t>(partitions_.size()) == kPartitions) return;
    numbers_.assign(kPartitions, -1);
    for (size_t i = 0; i < partitions_.size(); ++i) {
      numbers_[partitions_[i]] = static_cast<int32_t>(i);
    }
  }

  RowIndex index() const {
    if (numbers_.empty()) return {};
    return {numbers_.data(), partitions_.data(), static_cast<int64_t>(partitions_.size())};
  }
  // Returns the numbers of the stored partitions among [begin, end).
  Range NumbersIn(const Range& range) const {
    const auto number_of = [this](int64_t partition) {
      return std::lower_bound(partitions_.begin(), partitions_.end(), partition) -
             partitions_.begin();
    };
    return {number_of(range.begin), number_of(range.end)};
  }

  const std::vector<int32_t>& partitions() const { return partitions_; }
  const std::vector<int32_t>& numbers() const { return numbers_; }  // empty when all are here

 private:
  std::vector<int32_t> partitions_;
  std::vector<int32_t> numbers_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_INDEX_H_
