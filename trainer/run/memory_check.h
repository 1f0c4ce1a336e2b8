#ifndef ELASTOR_TRAINER_RUN_MEMORY_CHECK_H_
#define ELASTOR_TRAINER_RUN_MEMORY_CHECK_H_

#include <cstdint>
#include <span>
#include <string>

#include "collective/communicator.h"
#include "core/base/host_memory.h"
#include "core/base/leaves.h"
#include "core/base/status.h"
#include "embedding/shard_plan.h"
#include "trainer/experiment/memory_plan.h"

namespace elastor {

// Whether a run's memory is there, asked before any of it is taken: a rank that runs out of memory
// later is killed without a word.

// What one rank needs and may use; bytes, as all ranks exchange them.
struct RankReport {
  RankMemory needs;
  int64_t host_bytes = 0, host_available = 0;
  int64_t group_bytes = 0, group_available = 0;
  int64_t address_space_bytes = 0;
  int64_t device_bytes = 0;  // of its GPU; 0: has none
  uint64_t host = 0;         // ranks of one host, and of one control group, have equal numbers
  uint64_t group = 0;        // 0: no group has a limit
  char host_name[64] = "";
  char group_name[128] = "";
};
RankReport MakeReport(const RankMemory& needs, const HostMemory& memory, int64_t device_bytes);

// User error when what ranks are sure to touch is more than their host, their control group, their
// GPU or their limit of address space has: how much of what, the largest parts, and which changes
// of the run would fit. Otherwise a warning when the run may need more than there is, or empty. A
// function of the reports, by rank, and the plan alone.
StatusOr<std::string> JudgeMemory(std::span<const RankReport> reports, const MemoryPlan& plan);

// Collective: the ranks' reports and JudgeMemory, the same on all ranks. device_bytes: of this
// rank's GPU, or 0.
StatusOr<std::string> CheckMemory(const MemoryPlan& plan, const ShardPlan& shards,
                                  int64_t device_bytes, Communicator* communicator);

// How many embedding rows of this width a model or checkpoint folder has, at least (all of them
// with two slots a weight) and at most (without slots), by the sizes of its files.
Range RowsOfModel(const std::string& model_dir, int64_t width);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_MEMORY_CHECK_H_
