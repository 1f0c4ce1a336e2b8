#ifndef ELASTOR_TRAINER_DATA_WEIGHTED_ROWS_H_
#define ELASTOR_TRAINER_DATA_WEIGHTED_ROWS_H_

#include <string>

#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// User error if stats.json of the set at `path` says that all training or all validation rows have
// weight 0: nothing can be learned from the former, or measured on the latter. A set without such
// statistics is taken, as those of earlier versions are.
Status CheckWeightedRows(const std::string& path, const DatasetInfo& info);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_WEIGHTED_ROWS_H_
