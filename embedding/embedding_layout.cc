#include "embedding/embedding_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/log.h"

namespace elastor {

EmbeddingLayout::EmbeddingLayout(std::vector<TableSpec> tables, std::vector<FieldSpec> fields)
    : tables_(std::move(tables)), fields_(std::move(fields)), fields_of_table_(tables_.size()) {
  for (const TableSpec& table : tables_) {
    CHECK_GE(table.rows, table.keyed ? 0 : 1) << table.name;
    CHECK_GE(table.width, 1) << table.name;
    widest_ = std::max(widest_, table.width);
  }
  for (size_t f = 0; f < fields_.size(); ++f) {
    const int t = fields_[f].table;
    CHECK(t >= 0 && t < this->tables()) << "field '" << fields_[f].name << "': no table " << t;
    first_feature_.push_back(features_);
    features_ += tables_[t].width;
    place_in_table_.push_back(static_cast<int64_t>(fields_of_table_[t].size()));
    fields_of_table_[t].push_back(static_cast<int64_t>(f));
  }
}

Status EmbeddingLayout::IdOutsideTable(int64_t field, int64_t id) const {
  const TableSpec& table = tables_[fields_[field].table];
  return UserError("field '" + fields_[field].name + "': found id " + std::to_string(id) +
                   ", expected 0 <= id < " + std::to_string(table.rows) + " (rows of table '" +
                   table.name + "')");
}

}  // namespace elastor
