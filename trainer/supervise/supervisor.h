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
  std::vector<Host> hosts = {};  // with room for the ranks; empty: this host
  // mpirun and its options, to which the number of ranks, the hosts and the trainer are added.
  std::vector<std::string> launch;
  int max_restarts = 5;          // in a row, without a later checkpoint between them
  ParallelConfig parallel = {};  // the ranks'; its deadlines say how long they can live on
};

// Starts the job, and starts it again from its last checkpoint when it ends for a reason that
// another attempt may not meet (EndOf of core/process/job_process.h), on the hosts that answer
// then. A line on stderr tells every such event. Returns the exit code of the job's last attempt;
// an error when there was none: another supervisor is at work on the folder, or no host answers.
//
// SIGINT, SIGTERM, SIGUSR1 and SIGHUP ask the job for a checkpoint and its end, after which nothing
// is started; the second one kills it. When this process is killed the kernel kills the job.
// To be called once, by a process with one thread that is no rank of an MPI job.
StatusOr<int> Supervise(const SuperviseOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SUPERVISE_SUPERVISOR_H_
