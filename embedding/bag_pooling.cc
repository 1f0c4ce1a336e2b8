#include "embedding/bag_pooling.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/row_sums.h"
#include "embedding/row_math.h"

namespace elastor {
namespace {

template <typename T>
void Scale(int64_t width, T factor, T* vector) {
  for (int64_t i = 0; i < width; ++i) vector[i] *= factor;
}

// Rows of the batch whose bags of one field are pooled at a time, and transposed into panels from
// the nearest cache. Single ids are transposed where they lie: while one field's rows are, the next
// field's are fetched.
constexpr int64_t kBlockRows = kPanelRows;
constexpr int64_t kSingleIdBlockRows = 128;
static_assert(kBlockRows <= kSingleIdBlockRows && kSingleIdBlockRows % kPanelRows == 0);

// Ids whose rows are fetched into the cache before their turn, over the borders of bags and fields.
constexpr int64_t kLookAhead = 16;

// The rows that the bags of one field have in a block of the batch.
template <typename T>
struct BagRows {
  int64_t field;
  int64_t batch_row;                 // the first of the block
  int64_t bags;                      // rows of the block
  std::vector<const T*> rows;        // bag after bag; then kLookAhead valid ones
  uint32_t end[kSingleIdBlockRows];  // in rows, by bag
  int64_t size() const { return bags == 0 ? 0 : end[bags - 1]; }
};

template <typename T>
void ListRows(const EmbeddingLayout& layout, const UniqueIds& ids, const T* const* rows_of_ids,
              BagRows<T>* list) {
  const int64_t field = list->field;
  int64_t size = 0;
  for (int64_t i = 0; i < list->bags; ++i) {
    size += static_cast<int64_t>(ids.Bag(list->batch_row + i, field).size());
    list->end[i] = static_cast<uint32_t>(size);
  }
  const auto room = static_cast<size_t>(size + kLookAhead);
  if (list->rows.size() < room) list->rows.resize(room);
  const T** row = list->rows.data();
  for (int64_t i = 0; i < list->bags; ++i) {
    for (const uint32_t u : ids.Bag(list->batch_row + i, field)) *row++ = rows_of_ids[u];
  }
  if (!ids.single_id_bags()) return;
  for (int64_t i = 0; i < size; ++i) PrefetchRow(list->rows[i], layout.field_width(field));
}

// Puts the rows to fetch behind those of `list`: the first of `next`, or as many of its own.
template <typename T>
void LookAhead(const BagRows<T>& next, BagRows<T>* list) {
  const BagRows<T>& from = next.size() > 0 ? next : *list;
  if (list->size() == 0) return;
  for (int64_t i = 0; i < kLookAhead; ++i) {
    list->rows[list->size() + i] = from.rows[std::min(i, from.size() - 1)];
  }
}

// Points at the pooled rows of a list; `pooled` has room for them, one behind the other.
template <typename T>
void PointAtBags(const BagRows<T>& list, Pooling pooling, int64_t width, const T** pointers,
                 T* pooled) {
  const T* const* rows = list.rows.data();
  for (int64_t bag = 0; bag < list.bags; ++bag, pooled += width) {
    const int64_t length = list.rows.data() + list.end[bag] - rows;
    *pointers++ = length == 1 ? *rows : pooled;
    if (length == 1) {
      PrefetchRow(rows[kLookAhead], width);
    } else if (length == 0) {
      std::fill_n(pooled, width, T{0});
    } else {
      RowSums<T>().sum(rows, length, rows + kLookAhead, width, pooled);
      if (pooling == Pooling::kMean) Scale(width, T{1} / static_cast<T>(length), pooled);
    }
    rows += length;
  }
}

}  // namespace

template <typename T>
void PoolBags(const EmbeddingLayout& layout, const UniqueIds& ids, const T* const* rows_of_ids,
              int64_t row_begin, Panels<T> e) {
  CHECK_EQ(e.features, layout.features());
  CHECK_LE(row_begin + e.rows, ids.rows());
  const int64_t fields = layout.fields();
  if (fields == 0) return;
  const bool single = ids.single_id_bags();
  const int64_t block_rows = single ? kSingleIdBlockRows : kBlockRows;
  std::array<const T*, kBlockRows> pointers;
  thread_local std::array<BagRows<T>, 2> lists;
  thread_local std::vector<T> pooled;
  const int64_t pooled_elements = single ? 0 : kBlockRows * layout.widest();
  if (static_cast<int64_t>(pooled.size()) < pooled_elements) pooled.resize(pooled_elements);
  // Field after field of block after block; an empty list stands behind the last.
  const int64_t blocks = (e.rows + block_rows - 1) / block_rows;
  const auto list_of = [&](int64_t part) {
    BagRows<T>* const list = &lists[part % 2];
    const int64_t begin = part / fields * block_rows;
    list->field = part % fields;
    list->batch_row = row_begin + begin;
    list->bags = std::max<int64_t>(std::min(block_rows, e.rows - begin), 0);
    ListRows(layout, ids, rows_of_ids, list);
  };
  list_of(0);
  for (int64_t part = 0; part < blocks * fields; ++part) {
    list_of(part + 1);
    BagRows<T>& list = lists[part % 2];
    const int64_t panel = part / fields * block_rows / kPanelRows;
    const int64_t width = layout.field_width(list.field);
    const Panels<T> panels =
        Panels<T>{e.Panel(panel), list.bags, e.features, e.panel_stride, e.feature_stride}.Slice(
            layout.first_feature(list.field), width);
    if (single) {
      RowsToPanels(list.rows.data(), panels);
      continue;
    }
    LookAhead(lists[(part + 1) % 2], &list);
    PointAtBags(list, layout.field(list.field).pooling, width, pointers.data(), pooled.data());
    RowsToPanels(pointers.data(), panels);
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
