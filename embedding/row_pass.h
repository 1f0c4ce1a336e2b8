#ifndef ELASTOR_EMBEDDING_ROW_PASS_H_
#define ELASTOR_EMBEDDING_ROW_PASS_H_

#include <cstdint>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "embedding/owned_tables.h"

namespace elastor {

// Removes rows of a keyed table by its rules (row_rules.h), the same rows for any spread over ranks
// and threads. First those leave that are too old or too small (RowRules::by_limit). Then, if
// `full` or if the policy is another, the first rows in the order (score, key) leave until evict_to
// are left. The order's threshold over all ranks is found by integer histograms of 16 bits at a
// time. live: the table's rows on all ranks. Returns how many rows left, on all ranks. Collective.
template <typename T>
StatusOr<int64_t> EvictRows(int table, const RowRules& rules, int64_t now, int64_t live, bool full,
                            OwnedTables<T>* tables, Communicator* communicator);

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_PASS_H_
