#ifndef ELASTOR_TRAINER_PREPARE_PLAN_H_
#define ELASTOR_TRAINER_PREPARE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/data/block_format.h"
#include "trainer/data/dataset.h"

namespace elastor {

// The columns that a schema makes, in the order of the prepared set.
struct PreparePlan {
  struct IdColumn {
    const Field* field;
    bool bag;       // MULTI_HOT or SEQUENCE
    int64_t place;  // among the CATEGORICAL or among the bag fields
    bool text;      // VOCABULARY: values are texts, else integers
    bool keyed;     // the integers are keys, which no pass counts
    int table;      // the column whose vocabulary and table it uses, itself or an earlier one
  };
  // `schema` must outlive the plan and be as ReadSchemaFile returns it.
  explicit PreparePlan(const Schema& schema);

  // With the table sizes that the schema gives.
  DatasetInfo Info() const;
  // Bytes of an id in working files: 4, or 8 when a table has more than 2^32 rows.
  int id_bytes() const { return IdBytes(Info()); }

  const Schema& schema;
  std::vector<std::string> labels;  // names; of LIBSVM's empty
  std::vector<const Field*> numeric;
  std::vector<IdColumn> ids;
  int64_t singles = 0;
  int64_t bags = 0;
  bool weights = false;
  bool groups = false;
  bool times = false;
  bool split_by_hash = false;
  bool split_by_time = false;  // once all rows are read
  bool stores_splits = false;  // working files have the split of every row
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PLAN_H_
