#ifndef ELASTOR_TRAINER_DATA_DATA_STATISTICS_H_
#define ELASTOR_TRAINER_DATA_DATA_STATISTICS_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Parts of stats.json, the statistics of a prepared set, that a training reads. A set without such
// statistics is taken, as those of earlier versions are.

// User error if the statistics of the set at `path` say that all training or all validation rows
// have weight 0: nothing can be learned from the former, or measured on the latter.
Status CheckWeightedRows(const std::string& path, const DatasetInfo& info);

// Returns the lines that `prepare` told of data of which little is left, as a field whose values
// are all unknown in a split.
std::vector<std::string> WarningsOf(const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_DATA_STATISTICS_H_
