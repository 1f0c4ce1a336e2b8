#include "embedding/unique_ids.h"

#include <algorithm>
#include <limits>
#include <string>

#include "glog/logging.h"

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

Status UniqueIds::Build(const SparseBatch& batch) {
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
  const Status status = single_id_bags_ ? FillSingleIdColumns(batch) : FillColumns(batch);
  if (!status.ok()) {
    Clear();
    return status;
  }
  NumberKeys();
  ListOccurrences(batch);
  return OkStatus();
}

void UniqueIds::SizeColumns(const SparseBatch& batch) {
  std::fill(column_begin_.begin(), column_begin_.end(), 0);
  if (single_id_bags_) {
    CHECK_EQ(static_cast<int64_t>(batch.ids.size()), batch.rows * batch.fields);
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      const auto fields = static_cast<int64_t>(layout_->fields_of_table(t).size());
      column_begin_[t + 1] = column_begin_[t] + batch.rows * fields;
    }
  } else {
    CHECK_EQ(static_cast<int64_t>(batch.offsets.size()), batch.rows * batch.fields + 1);
    CHECK_EQ(batch.offsets.front(), 0);
    CHECK_EQ(batch.offsets.back(), static_cast<int64_t>(batch.ids.size()));
    for (int64_t b = 0; b < batch.rows * batch.fields; ++b) {
      const int64_t length = batch.offsets[b + 1] - batch.offsets[b];
      CHECK_GE(length, 0) << "offsets of bag " << b;
      column_begin_[layout_->field(b % batch.fields).table + 1] += length;
    }
    for (int64_t t = 0; t < layout_->tables(); ++t) column_begin_[t + 1] += column_begin_[t];
  }
  column_ids_.Resize(static_cast<int64_t>(batch.ids.size()));
}

Status UniqueIds::FillSingleIdColumns(const SparseBatch& batch) {
  for (int64_t f = 0; f < batch.fields; ++f) {
    const int table = layout_->field(f).table;
    const int64_t limit = layout_->table(table).rows;
    const int64_t step = static_cast<int64_t>(layout_->fields_of_table(table).size());
    column_of_field_[f] = column_begin_[table] + layout_->place_in_table(f);
    step_of_field_[f] = step;
    const int64_t* id = batch.ids.data() + f;
    int64_t* column = column_ids_.data() + column_of_field_[f];
    bool inside = true;
    for (int64_t row = 0; row < batch.rows; ++row) {
      const int64_t value = id[row * batch.fields];
      inside &= static_cast<uint64_t>(value) < static_cast<uint64_t>(limit);
      column[row * step] = value;
    }
    if (inside) continue;
    for (int64_t row = 0; row < batch.rows; ++row) {
      const int64_t value = id[row * batch.fields];
      if (value < 0 || value >= limit) return layout_->IdOutsideTable(f, value);
    }
  }
  return OkStatus();
}

Status UniqueIds::FillColumns(const SparseBatch& batch) {
  bags_.Resize(batch.rows * batch.fields);
  std::vector<int64_t> cursor = column_begin_;
  for (int64_t b = 0; b < batch.rows * batch.fields; ++b) {
    const int64_t f = b % batch.fields;
    const int table = layout_->field(f).table;
    int64_t& position = cursor[table];
    bags_[b] = {static_cast<uint32_t>(position),
                static_cast<uint32_t>(batch.offsets[b + 1] - batch.offsets[b])};
    for (int64_t i = batch.offsets[b]; i < batch.offsets[b + 1]; ++i) {
      const int64_t id = batch.ids[i];
      if (id < 0 || id >= layout_->table(table).rows) return layout_->IdOutsideTable(f, id);
      column_ids_[position++] = id;
    }
  }
  return OkStatus();
}

void UniqueIds::NumberKeys() {
  const int64_t ids = column_begin_.back();
  unique_of_.Resize(ids);
  keys_.Resize(ids);
  // Counts of unique id u are collected at u + 1, for the running sum of ListOccurrences.
  uint32_t* counts = occurrence_begin_.Resize(ids + 1) + 1;
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const int64_t first = table_begin_[t];
    const int64_t begin = column_begin_[t];
    const int64_t end = column_begin_[t + 1];
    index_.Reset(end - begin, keys_.data() + first);
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t known = index_.size();
      const uint32_t u = index_.FindOrAdd(column_ids_[i]);
      if (u == known) counts[first + u] = 0;
      ++counts[first + u];
      unique_of_[i] = static_cast<uint32_t>(first + u);
    }
    table_begin_[t + 1] = first + index_.size();
  }
}

void UniqueIds::ListOccurrences(const SparseBatch& batch) {
  const int64_t uniques = size();
  cursor_.Resize(uniques);
  occurrence_begin_[0] = 0;
  for (int64_t u = 0; u < uniques; ++u) {
    cursor_[u] = occurrence_begin_[u];
    occurrence_begin_[u + 1] += occurrence_begin_[u];
  }
  occurrences_.Resize(column_begin_.back() + kOccurrencePadding);
  std::fill_n(occurrences_.data() + column_begin_.back(), kOccurrencePadding, Occurrence{0, 0});
  const auto features = static_cast<uint32_t>(layout_->features());
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const std::vector<int64_t>& fields = layout_->fields_of_table(t);
    const uint32_t* unique = unique_of_.data() + column_begin_[t];
    for (size_t i = 0; i + 1 < batch.leaf_offsets.size(); ++i) {
      const auto leaf = static_cast<uint32_t>(batch.first_leaf + static_cast<int64_t>(i));
      for (int64_t row = batch.leaf_offsets[i]; row < batch.leaf_offsets[i + 1]; ++row) {
        for (int64_t f : fields) {
          const uint32_t offset = static_cast<uint32_t>(row) * features +
                                  static_cast<uint32_t>(layout_->first_feature(f));
          const uint32_t length = single_id_bags_ ? 1 : bags_[row * batch.fields + f].length;
          for (uint32_t p = 0; p < length; ++p) occurrences_[cursor_[*unique++]++] = {offset, leaf};
        }
      }
    }
  }
}

}  // namespace elastor
