#include "embedding/bag_pooling.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/elementwise.h"
#include "embedding/row_math.h"

namespace elastor {
namespace {

// Rows pooled at a time: while one field's rows are transposed into panels, the next field's are
// fetched into the cache.
constexpr int64_t kBlockRows = 128;
static_assert(kBlockRows % kPanelRows == 0);

template <typename T>
void Scale(int64_t width, T factor, T* vector) {
  for (int64_t i = 0; i < width; ++i) vector[i] *= factor;
}

// The sums of columns [column, column + kColumns) stay in registers.
template <int64_t kColumns, typename T>
void PoolColumns(std::span<const uint32_t> bag, const T* const* rows_of_ids, int64_t column,
                 T* pooled) {
  T total[kColumns];
  std::copy_n(rows_of_ids[bag[0]] + column, kColumns, total);
  for (const uint32_t u : bag.subspan(1)) {
    const T* row = rows_of_ids[u] + column;
    for (int64_t i = 0; i < kColumns; ++i) total[i] += row[i];
  }
  std::copy_n(total, kColumns, pooled + column);
}

template <typename T>
void PoolBag(std::span<const uint32_t> bag, const T* const* rows_of_ids, Pooling pooling,
             int64_t width, T* pooled) {
  if (bag.empty()) {
    std::fill_n(pooled, width, T{0});
    return;
  }
  int64_t column = 0;
  for (; column + 16 <= width; column += 16) PoolColumns<16>(bag, rows_of_ids, column, pooled);
  for (; column + 4 <= width; column += 4) PoolColumns<4>(bag, rows_of_ids, column, pooled);
  for (; column < width; ++column) PoolColumns<1>(bag, rows_of_ids, column, pooled);
  if (pooling == Pooling::kMean) Scale(width, T{1} / static_cast<T>(bag.size()), pooled);
}

// Points at the pooled rows of one field for a block of rows; `pooled` has room for all of them.
template <typename T>
void PointAtBags(const EmbeddingLayout& layout, const UniqueIds& ids, const T* const* rows_of_ids,
                 int64_t field, const Range& rows, const T** pointers, T* pooled) {
  const int64_t width = layout.field_width(field);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const std::span<const uint32_t> bag = ids.Bag(row, field);
    if (bag.size() == 1) {
      const T* pointer = rows_of_ids[bag[0]];
      PrefetchRow(pointer, width);
      *pointers++ = pointer;
    } else {
      // While one bag is added up, the rows of the next are fetched into the cache.
      if (row + 1 < rows.end) {
        for (const uint32_t u : ids.Bag(row + 1, field)) PrefetchRow(rows_of_ids[u], width);
      }
      PoolBag(bag, rows_of_ids, layout.field(field).pooling, width, pooled);
      *pointers++ = pooled;
    }
    pooled += width;
  }
}

}  // namespace

template <typename T>
void PoolBags(const EmbeddingLayout& layout, const UniqueIds& ids, const T* const* rows_of_ids,
              int64_t row_begin, Panels<T> e) {
  CHECK_EQ(e.features, layout.features());
  CHECK_LE(row_begin + e.rows, ids.rows());
  if (layout.fields() == 0) return;
  std::array<std::array<const T*, kBlockRows>, 2> pointers;
  thread_local std::vector<T> pooled;
  const int64_t pooled_elements = ids.single_id_bags() ? 0 : kBlockRows * layout.widest();
  if (static_cast<int64_t>(pooled.size()) < 2 * pooled_elements) pooled.resize(2 * pooled_elements);
  for (int64_t block = 0; block < e.rows; block += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, e.rows - block);
    const Panels<T> panels{e.Panel(block / kPanelRows), rows, e.features, e.panel_stride,
                           e.feature_stride};
    const auto point = [&](int64_t field) {
      PointAtBags(layout, ids, rows_of_ids, field, {row_begin + block, row_begin + block + rows},
                  pointers[field % 2].data(), pooled.data() + field % 2 * pooled_elements);
    };
    point(0);
    for (int64_t f = 0; f < layout.fields(); ++f) {
      if (f + 1 < layout.fields()) point(f + 1);
      RowsToPanels(pointers[f % 2].data(),
                   panels.Slice(layout.first_feature(f), layout.field_width(f)));
    }
  }
}

template <typename T>
void UnpoolGradients(const EmbeddingLayout& layout, const UniqueIds& ids, int64_t row_begin,
                     Panels<const T> de, T* gradients) {
  CHECK_EQ(de.features, layout.features());
  CHECK_LE(row_begin + de.rows, ids.rows());
  PanelsToRows(de, gradients + row_begin * layout.features(), layout.features());
  if (ids.single_id_bags()) return;
  for (int64_t row = row_begin; row < row_begin + de.rows; ++row) {
    for (int64_t f = 0; f < layout.fields(); ++f) {
      const auto length = static_cast<T>(ids.Bag(row, f).size());
      if (layout.field(f).pooling != Pooling::kMean || length < 2) continue;
      T* const gradient = gradients + row * layout.features() + layout.first_feature(f);
      for (int64_t i = 0; i < layout.field_width(f); ++i) {
        gradient[i] = gradient[i] * (T{1} / length) + T{0};
      }
    }
  }
}

ELASTOR_INSTANTIATE(PoolBags, float, double)
ELASTOR_INSTANTIATE(UnpoolGradients, float, double)

}  // namespace elastor
