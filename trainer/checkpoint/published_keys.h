#ifndef ELASTOR_TRAINER_CHECKPOINT_PUBLISHED_KEYS_H_
#define ELASTOR_TRAINER_CHECKPOINT_PUBLISHED_KEYS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/checkpoint/state_view.h"

namespace elastor {

// Returns whether publications of the state have keyed tables.
bool PublishesKeyedTables(const StateView& state);

// Takes keys of a table of the state. What the last call says of a key holds.
using TakeKeys = std::function<void(int table, std::span<const int64_t> keys, bool have_rows)>;

// Tells every rank the keys whose rows publication `number` has in keyed tables: those of the
// newest base up to it, then those that each delta behind the base brings and takes away. Rank 0
// alone reads, and verifies what it reads. `result` is the publication's; user error if the folder
// has no whole chain of publications up to that. Collective.
Status ReadPublishedKeys(const std::string& folder, int64_t number, const std::string& result,
                         const StateView& state, Communicator& communicator, const TakeKeys& take);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_PUBLISHED_KEYS_H_
