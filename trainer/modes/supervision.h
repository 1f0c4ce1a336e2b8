#ifndef ELASTOR_TRAINER_MODES_SUPERVISION_H_
#define ELASTOR_TRAINER_MODES_SUPERVISION_H_

#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/supervise/hosts.h"

namespace elastor {

// The flags of a supervised training job, and its start.

// Returns the hosts that --hosts or --hostfile name, if any; without --ranks, FLAGS_ranks becomes
// the number of ranks that they have room for. User error in one line.
StatusOr<std::vector<Host>> ReadHosts();

// Whether the flags and the experiment let a job be supervised. User error in one line.
Status CheckSupervision(const Experiment& experiment, const std::vector<Host>& hosts);

// Starts the ranks, and starts them again when one is lost. They get `arguments` and after them
// flags that make them ranks. Returns the job's exit code.
StatusOr<int> SuperviseJob(const std::vector<Host>& hosts, const ParallelConfig& parallel,
                           const std::vector<std::string>& arguments);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_MODES_SUPERVISION_H_
