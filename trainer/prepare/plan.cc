#include "trainer/prepare/plan.h"

#include <google/protobuf/text_format.h>

#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "trainer/prepare/rows/row_builder.h"

namespace elastor {
namespace {

// How the field's raw values become ids: "vocabulary", "hour identity", "bucket[1.0,2.5] hash".
std::string EncodingText(const Field& field) {
  std::string text;
  if (field.transform() != Field::NONE) {
    text = LowerCase(Field::Transform_Name(field.transform()));
    if (!field.boundaries().empty()) {
      const std::vector<double> boundaries(field.boundaries().begin(), field.boundaries().end());
      text += Json(boundaries).dump();
    }
    text += ' ';
  }
  text += LowerCase(Field::Encoding_Name(field.encoding()));
  if (field.offset() != 0) StrAppend(&text, " from ", field.offset());
  return text;
}

// Which ids of a bag stay.
std::string KeepsText(const Field& field) {
  const int64_t length = field.max_length() == 0 ? int64_t{kDefaultMaxLength} : field.max_length();
  return StrCat(field.type() == Field::SEQUENCE ? "last " : "first ", length);
}

}  // namespace

PreparePlan::PreparePlan(const Schema& schema) : schema(schema) {
  const SplitPlan& split = schema.split();
  const bool shares = split.train() + split.validation() + split.test() > 0;
  split_by_hash = split.by() == SplitPlan::HASH && shares;
  // Negatives are drawn when the splits of all rows are known.
  stores_splits =
      split_by_hash || (schema.has_negatives() && (shares || split.by() == SplitPlan::TIME));
  split_by_time = split.by() == SplitPlan::TIME && !stores_splits;
  std::map<std::string_view, int> tables;  // of the fields so far
  for (const Field& field : schema.fields()) {
    if (field.type() == Field::LABEL) labels.push_back(field.name());
    weights |= field.type() == Field::WEIGHT;
    groups |= field.type() == Field::GROUP;
    times |= field.type() == Field::TIME;
    if (field.type() == Field::NUMERIC) numeric.push_back(&field);
    const bool bag = field.type() == Field::MULTI_HOT || field.type() == Field::SEQUENCE;
    if (!bag && field.type() != Field::CATEGORICAL) continue;
    const int own = static_cast<int>(ids.size());
    const auto shared = tables.find(field.shares());
    const int table = shared == tables.end() ? own : shared->second;
    tables[field.name()] = table;
    const Field& owner = table < own ? *ids[table].field : field;
    ids.push_back({&field, bag, bag ? bags++ : singles++, owner.encoding() == Field::VOCABULARY,
                   MakesKeys(owner.encoding()), table});
  }
  if (labels.empty()) labels.emplace_back();
}

DatasetInfo PreparePlan::Info() const {
  DatasetInfo info;
  info.name = schema.name();
  Schema of_rows = schema;
  of_rows.clear_split();  // splits that have the same rows make the same set
  CHECK(google::protobuf::TextFormat::PrintToString(of_rows, &info.schema));
  info.rows_per_block = schema.rows_per_block();
  info.has_weights = weights;
  info.has_groups = groups;
  info.has_times = times;
  for (const std::string& label : labels) {
    if (labels.size() > 1) info.labels.push_back({label});
  }
  for (const Field* field : numeric) info.numeric.push_back({field->name()});
  for (size_t i = 0; i < ids.size(); ++i) {
    const IdColumn& column = ids[i];
    const bool shares = column.table != static_cast<int>(i);
    info.categorical.push_back({column.field->name(), ids[column.table].field->buckets(),
                                column.bag, column.field->pooling() == Field::MEAN,
                                shares ? column.table : -1, EncodingText(*column.field),
                                column.bag ? KeepsText(*column.field) : ""});
    info.categorical.back().keyed = column.keyed;
  }
  return info;
}

}  // namespace elastor
