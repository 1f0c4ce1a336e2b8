#ifndef ELASTOR_TRAINER_SUPERVISE_SUPERVISOR_H_
#define ELASTOR_TRAINER_SUPERVISE_SUPERVISOR_H_

#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/supervise/hosts.h"

namespace elastor {

struct SuperviseOptions {
  std::vector<std::string> trainer;  // what a rank is: the program and its arguments
  std::string output_dir;
  int ranks = 1;
  std::vector<Host> hosts = {};  // hosts with room for the ranks; empty: this host
  // mpirun and its options, to which the number of ranks, the hosts and the trainer are added.
  std::vector<std::string> launch;
  int max_restarts = 5;          // most restarts in a row without a new checkpoint between them
  ParallelConfig parallel = {};  // the ranks' settings; its deadlines say how long they can live on
};

// Starts the job. Starts it again from its last checkpoint, on the hosts that answer then, when it
// ends for a reason that another attempt may not meet (EndOf in core/process/job_process.h). Prints
// a line on stderr for every such event. Returns the exit code of the job's last attempt. Error
// when there was no attempt: another supervisor is at work on the folder, or no host answers.
//
// SIGINT, SIGTERM, SIGUSR1 and SIGHUP ask the job to write a checkpoint and end; it is not started
// again. A second signal kills the job. When this process is killed, the kernel kills the job. To
// be called once, by a process with one thread that is no rank of an MPI job.
StatusOr<int> Supervise(const SuperviseOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SUPERVISE_SUPERVISOR_H_
