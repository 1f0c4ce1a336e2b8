#include "embedding/unique_ids.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <string>

#include "core/base/log.h"

namespace elastor {

UniqueIds::UniqueIds(const EmbeddingLayout* layout)
    : layout_(layout),
      column_begin_(layout->tables() + 1),
      column_of_field_(layout->fields()),
      step_of_field_(layout->fields()) {
  Clear();
}

void UniqueIds::Clear() {
  rows_ = 0;
  table_begin_.assign(layout_->tables() + 1, 0);
  occurrence_begin_.Resize(1)[0] = 0;
}

Status UniqueIds::Build(const SparseBatch& batch, ThreadPool* pool) {
  constexpr int64_t kLimit = std::numeric_limits<uint32_t>::max();  // offsets have 32 bits
  CHECK_EQ(batch.fields, layout_->fields());
  CHECK_LT(static_cast<int64_t>(batch.ids.size()), kLimit);
  CHECK_LT(batch.rows * layout_->features(), kLimit) << "rows of one rank times features";
  CHECK(!batch.leaf_offsets.empty());
  CHECK_EQ(batch.leaf_offsets.back(), batch.rows);
  Clear();
  rows_ = batch.rows;
  leaf_offsets_ = batch.leaf_offsets;
  single_id_bags_ = batch.offsets.empty();
  SizeColumns(batch);
  std::atomic<bool> inside = true;
  ForTables(pool, [&](int thread, int64_t t) {
    if (FillColumn(batch, t)) {
      NumberKeys(t, &indexes_[thread]);
    } else {
      inside = false;
    }
  });
  if (!inside) {
    Clear();
    return FirstBadId(batch);
  }
  std::partial_sum(table_begin_.begin(), table_begin_.end(), table_begin_.begin());
  keys_.Resize(size());
  occurrence_begin_.Resize(size() + 1)[0] = 0;
  occurrences_.Resize(column_begin_.back() + kOccurrencePadding);
  std::fill_n(occurrences_.data() + column_begin_.back(), kOccurrencePadding, Occurrence{0, 0});
  ForTables(pool, [&](int, int64_t t) { ListOccurrences(batch, t); });
  return OkStatus();
}

// Calls work(thread, table) for every table. Threads take the next one when they are done with one:
// columns may have any lengths.
template <typename Work>
void UniqueIds::ForTables(ThreadPool* pool, const Work& work) {
  std::atomic<int64_t> next = 0;
  const auto take_tables = [&](int thread) {
    for (int64_t t = next++; t < layout_->tables(); t = next++) work(thread, t);
  };
  const int threads = pool == nullptr ? 1 : pool->threads();
  if (static_cast<int>(indexes_.size()) < threads) indexes_.resize(threads);
  if (threads == 1) return take_tables(0);
  pool->Run(take_tables);
}

void UniqueIds::SizeColumns(const SparseBatch& batch) {
  std::fill(column_begin_.begin(), column_begin_.end(), 0);
  if (single_id_bags_) {
    CHECK_EQ(static_cast<int64_t>(batch.ids.size()), batch.rows * batch.fields);
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      const std::vector<int64_t>& fields = layout_->fields_of_table(t);
      const auto step = static_cast<int64_t>(fields.size());
      column_begin_[t + 1] = column_begin_[t] + batch.rows * step;
      for (int64_t i = 0; i < step; ++i) {
        column_of_field_[fields[i]] = column_begin_[t] + i;
        step_of_field_[fields[i]] = step;
      }
    }
  } else {
    CHECK_EQ(static_cast<int64_t>(batch.offsets.size()), batch.rows * batch.fields + 1);
    CHECK_EQ(batch.offsets.front(), 0);
    CHECK_EQ(batch.offsets.back(), static_cast<int64_t>(batch.ids.size()));
    const int64_t* offset = batch.offsets.data();
    for (int64_t row = 0; row < batch.rows; ++row) {
      for (int64_t f = 0; f < batch.fields; ++f, ++offset) {
        CHECK_LE(offset[0], offset[1]) << "offsets of row " << row << ", field " << f;
        column_begin_[layout_->field(f).table + 1] += offset[1] - offset[0];
      }
    }
    std::partial_sum(column_begin_.begin(), column_begin_.end(), column_begin_.begin());
    bags_.Resize(batch.rows * batch.fields);
  }
  const int64_t ids = column_begin_.back();
  column_ids_.Resize(ids);
  unique_of_.Resize(ids);
  column_keys_.Resize(ids);
  column_counts_.Resize(ids);
}

bool UniqueIds::FillColumn(const SparseBatch& batch, int64_t t) {
  const uint64_t last = layout_->table(t).keys().last();
  bool inside = true;
  if (single_id_bags_) {
    for (const int64_t f : layout_->fields_of_table(t)) {
      const int64_t* id = batch.ids.data() + f;
      int64_t* to = column_ids_.data() + column_of_field_[f];
      for (int64_t row = 0; row < batch.rows; ++row, id += batch.fields, to += step_of_field_[f]) {
        *to = *id;
        inside &= static_cast<uint64_t>(*id) <= last;
      }
    }
    return inside;
  }
  int64_t position = column_begin_[t];
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (const int64_t f : layout_->fields_of_table(t)) {
      const int64_t* const offset = batch.offsets.data() + row * batch.fields + f;
      bags_[f * batch.rows + row] = {static_cast<uint32_t>(position),
                                     static_cast<uint32_t>(offset[1] - offset[0])};
      for (int64_t i = offset[0]; i < offset[1]; ++i) {
        column_ids_[position++] = batch.ids[i];
        inside &= static_cast<uint64_t>(batch.ids[i]) <= last;
      }
    }
  }
  return inside;
}

void UniqueIds::NumberKeys(int64_t t, KeyIndex* index) {
  const int64_t begin = column_begin_[t];
  const int64_t ids = column_begin_[t + 1] - begin;
  const uint32_t* unique = unique_of_.data() + begin;
  uint32_t* counts = column_counts_.data() + begin;
  index->Reset(ids, column_keys_.data() + begin);
  index->Number({column_ids_.data() + begin, static_cast<size_t>(ids)}, unique_of_.data() + begin);
  std::fill_n(counts, index->size(), 0);
  for (int64_t i = 0; i < ids; ++i) ++counts[unique[i]];
  table_begin_[t + 1] = index->size();
}

// Turns the numbers of a table into those of all.
void UniqueIds::ListOccurrences(const SparseBatch& batch, int64_t t) {
  const Range uniques = OfTable(t);
  std::copy_n(column_keys_.data() + column_begin_[t], uniques.size(), keys_.data() + uniques.begin);
  // While the occurrences are listed, the end of those of unique id u is where the next one goes.
  uint32_t* const end = occurrence_begin_.data() + uniques.begin + 1;
  const uint32_t* const counts = column_counts_.data() + column_begin_[t];
  auto begin = static_cast<uint32_t>(column_begin_[t]);
  for (int64_t u = 0; u < uniques.size(); ++u) {
    end[u] = begin;
    begin += counts[u];
  }
  const auto first = static_cast<uint32_t>(uniques.begin);
  const auto features = static_cast<uint32_t>(layout_->features());
  uint32_t* unique = unique_of_.data() + column_begin_[t];
  for (size_t i = 0; i + 1 < batch.leaf_offsets.size(); ++i) {
    const auto leaf = static_cast<uint32_t>(batch.first_leaf + static_cast<int64_t>(i));
    for (int64_t row = batch.leaf_offsets[i]; row < batch.leaf_offsets[i + 1]; ++row) {
      for (const int64_t f : layout_->fields_of_table(t)) {
        const uint32_t offset = static_cast<uint32_t>(row) * features +
                                static_cast<uint32_t>(layout_->first_feature(f));
        const uint32_t length = single_id_bags_ ? 1 : bags_[f * batch.rows + row].length;
        for (uint32_t p = 0; p < length; ++p, ++unique) {
          occurrences_[end[*unique]++] = {offset, leaf};
          *unique += first;
        }
      }
    }
  }
}

// The first in the order of the batch; of single-id bags, in the first field that has one.
Status UniqueIds::FirstBadId(const SparseBatch& batch) const {
  const auto check = [&](int64_t f, int64_t id) {
    const KeySpace keys = layout_->table(layout_->field(f).table).keys();
    return keys.Contains(id) ? OkStatus() : layout_->IdOutsideTable(f, id);
  };
  if (batch.offsets.empty()) {
    for (int64_t f = 0; f < batch.fields; ++f) {
      for (int64_t row = 0; row < batch.rows; ++row) {
        ELASTOR_RETURN_IF_ERROR(check(f, batch.ids[row * batch.fields + f]));
      }
    }
  } else {
    for (int64_t bag = 0; bag < batch.rows * batch.fields; ++bag) {
      for (int64_t i = batch.offsets[bag]; i < batch.offsets[bag + 1]; ++i) {
        ELASTOR_RETURN_IF_ERROR(check(bag % batch.fields, batch.ids[i]));
      }
    }
  }
  LOG(FATAL) << "no id is outside its table";
}

}  // namespace elastor
