#ifndef ELASTOR_TESTS_EMBEDDING_EMBEDDING_BATCHES_H_
#define ELASTOR_TESTS_EMBEDDING_EMBEDDING_BATCHES_H_

#include <cstdint>
#include <vector>

#include "core/base/leaves.h"
#include "core/base/random.h"
#include "embedding/table.h"
#include "tests/embedding/embedding_reference.h"

namespace elastor {

enum class Bags { kSingleId, kMultiHot };

// Ids are bunched at small values, so that many repeat within and over leaves.
inline GlobalBatch MakeBatch(const std::vector<TableSpec>& tables,
                             const std::vector<FieldSpec>& fields, int64_t rows, uint64_t stream,
                             Bags bags) {
  GlobalBatch batch;
  batch.bags.resize(rows);
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t f = 0; f < fields.size(); ++f) {
      const auto word = [&](uint32_t i) {
        return Philox(stream, {static_cast<uint32_t>(row), static_cast<uint32_t>(f), i, 0})[0];
      };
      const uint32_t length = bags == Bags::kSingleId ? 1 : word(100) % 4;
      std::vector<int64_t> bag;
      for (uint32_t p = 0; p < length; ++p) {
        const double u = UniformFromBits(word(p));
        bag.push_back(static_cast<int64_t>(u * u * u * tables[fields[f].table].rows));
      }
      if (length == 3) bag[2] = bag[0];  // repeated inside a bag
      batch.bags[row].push_back(bag);
    }
  }
  return batch;
}

// [row][feature], with a -0 in every row.
template <typename T>
std::vector<std::vector<T>> MakeGradients(int64_t rows, int64_t features, uint64_t stream) {
  std::vector<std::vector<T>> de(rows, std::vector<T>(features));
  for (int64_t row = 0; row < rows; ++row) {
    FillNormal(stream, row, 1, features, de[row].data());
    de[row][row % features] = -T{0};
  }
  return de;
}

// The part of a batch that one rank computes.
inline SparseBatch RankBatch(const GlobalBatch& batch, int64_t fields, int rank, int ranks,
                             int64_t leaves) {
  const Range owned = LeavesOfRank(rank, ranks, leaves);
  SparseBatch mine;
  mine.fields = fields;
  mine.first_leaf = owned.begin;
  mine.leaf_offsets.push_back(0);
  std::vector<int64_t> offsets{0};
  bool single = true;
  for (const auto& row : batch.bags) {
    for (const auto& bag : row) single &= bag.size() == 1;
  }
  for (int64_t leaf = owned.begin; leaf < owned.end; ++leaf) {
    const Range rows = RowsOfLeaf(leaf, leaves, batch.rows());
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (const auto& bag : batch.bags[row]) {
        mine.ids.insert(mine.ids.end(), bag.begin(), bag.end());
        offsets.push_back(static_cast<int64_t>(mine.ids.size()));
      }
    }
    mine.rows += rows.size();
    mine.leaf_offsets.push_back(mine.rows);
  }
  if (!single) mine.offsets = offsets;
  return mine;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_EMBEDDING_EMBEDDING_BATCHES_H_
