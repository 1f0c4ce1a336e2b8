#include "trainer/prepare/plan.h"

#include <glog/logging.h>

namespace elastor {

PreparePlan::PreparePlan(const Schema& schema) : schema(schema) {
  const SplitPlan& split = schema.split();
  split_by_hash =
      split.by() == SplitPlan::HASH && split.train() + split.validation() + split.test() > 0;
  for (const Field& field : schema.fields()) {
    weights |= field.type() == Field::WEIGHT;
    groups |= field.type() == Field::GROUP;
    times |= field.type() == Field::TIME;
    if (field.type() == Field::NUMERIC) numeric.push_back(&field);
    const bool bag = field.type() == Field::MULTI_HOT || field.type() == Field::SEQUENCE;
    if (!bag && field.type() != Field::CATEGORICAL) continue;
    int table = static_cast<int>(ids.size());
    for (int i = 0; i < static_cast<int>(ids.size()); ++i) {
      if (ids[i].field->name() == field.shares()) table = ids[i].table;
    }
    const Field& owner = table < static_cast<int>(ids.size()) ? *ids[table].field : field;
    ids.push_back(
        {&field, bag, bag ? bags++ : singles++, owner.encoding() == Field::VOCABULARY, table});
  }
}

DatasetInfo PreparePlan::Info() const {
  DatasetInfo info;
  info.name = schema.name();
  info.rows_per_block = schema.rows_per_block();
  info.has_weights = weights;
  info.has_groups = groups;
  info.has_times = times;
  for (const Field* field : numeric) info.numeric.push_back({field->name()});
  for (size_t i = 0; i < ids.size(); ++i) {
    const IdColumn& column = ids[i];
    const bool shares = column.table != static_cast<int>(i);
    info.categorical.push_back({column.field->name(), ids[column.table].field->buckets(),
                                column.bag, column.field->pooling() == Field::MEAN,
                                shares ? column.table : -1});
  }
  return info;
}

}  // namespace elastor
