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

// Checks that a run's memory is available before any of it is taken. A rank that runs out of memory
// later would be killed without a message.

// Memory that one rank needs and may use, in bytes. All ranks exchange these reports.
struct RankReport {
  RankMemory needs;
  int64_t host_bytes = 0, host_available = 0;
  int64_t group_bytes = 0, group_available = 0;
  int64_t address_space_bytes = 0;
  int64_t device_bytes = 0;  // memory of its GPU; 0: it has none
  uint64_t host = 0;         // number of its host; equal for the ranks of one host
  uint64_t group = 0;        // number of its control group, likewise; 0: no group has a limit
  char host_name[64] = "";
  char group_name[128] = "";
};
RankReport MakeReport(const RankMemory& needs, const HostMemory& memory, int64_t device_bytes);

// Judges the reports, which are ordered by rank. User error when ranks will certainly touch more
// than their host, control group, GPU or address space limit has. It names the amounts, the largest
// parts, and changes of the run that would fit. Otherwise returns a warning when the run may need
// more than there is, or an empty text. Depends on the arguments alone.
StatusOr<std::string> JudgeMemory(std::span<const RankReport> reports, const MemoryPlan& plan);

// Exchanges the ranks' reports and judges them (JudgeMemory). The result is the same on all ranks.
// device_bytes: memory of this rank's GPU, or 0. Collective.
StatusOr<std::string> CheckMemory(const MemoryPlan& plan, const ShardPlan& shards,
                                  int64_t device_bytes, Communicator* communicator);

// Bounds the number of embedding rows of this width in a model or checkpoint folder by its files'
// sizes. The lower bound assumes two slots per weight, the upper one no slots.
Range RowsOfModel(const std::string& model_dir, int64_t width);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_MEMORY_CHECK_H_
