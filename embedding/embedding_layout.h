#ifndef ELASTOR_EMBEDDING_EMBEDDING_LAYOUT_H_
#define ELASTOR_EMBEDDING_EMBEDDING_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "embedding/table.h"

namespace elastor {

// Tables, fields, and where a field's features lie in a row of activations: field after field.
// Immutable.
class EmbeddingLayout {
 public:
  EmbeddingLayout(std::vector<TableSpec> tables, std::vector<FieldSpec> fields);

  int64_t tables() const { return static_cast<int64_t>(tables_.size()); }
  int64_t fields() const { return static_cast<int64_t>(fields_.size()); }
  const TableSpec& table(int64_t t) const { return tables_[t]; }
  const FieldSpec& field(int64_t f) const { return fields_[f]; }

  int64_t width(int64_t t) const { return tables_[t].width; }
  int64_t field_width(int64_t f) const { return tables_[fields_[f].table].width; }
  int64_t first_feature(int64_t f) const { return first_feature_[f]; }
  int64_t features() const { return features_; }
  int64_t widest() const { return widest_; }  // the largest table width; 0 without tables

  // Returns the user error for an id of a field that is not below its table's rows.
  Status IdOutsideTable(int64_t field, int64_t id) const;

  // Returns the table of a role that serves table t; -1: none.
  int Beside(int64_t t, TableRole role) const {
    if (!tables_[t].rules.admits()) return -1;
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (tables_[i].beside == t && tables_[i].role == role) return static_cast<int>(i);
    }
    return -1;
  }

  // Returns the fields that look up table t, ascending, and a field's place among the fields of its
  // table.
  const std::vector<int64_t>& fields_of_table(int64_t t) const { return fields_of_table_[t]; }
  int64_t place_in_table(int64_t f) const { return place_in_table_[f]; }

 private:
  std::vector<TableSpec> tables_;
  std::vector<FieldSpec> fields_;
  std::vector<int64_t> first_feature_;
  std::vector<std::vector<int64_t>> fields_of_table_;
  std::vector<int64_t> place_in_table_;
  int64_t features_ = 0;
  int64_t widest_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_EMBEDDING_LAYOUT_H_
