#ifndef ELASTOR_LAUNCHER_SLURM_SCHEDULER_H_
#define ELASTOR_LAUNCHER_SLURM_SCHEDULER_H_

#include <map>
#include <string>
#include <vector>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// A sweep through Slurm. No process need live for it: the runs are elements of job arrays
// (launcher/slurm_array.h), each of which looks after itself (launcher/slurm_element.h), and one
// more job waits until all of them have ended, and then does what SubmitWhatIsLeft does.

struct SlurmSweep {
  const Plan& plan;
  const SweepFiles& files;
  const Slurm& slurm;
  std::string trainer;
  std::vector<std::string> advance;  // the command of the job that waits for the arrays
};

// Who submits. What a user cancelled is started again by the user's next command, not by itself.
enum class Submitter { kUser, kNobody };

// Submits every run that is left and that Slurm does not have, in few job arrays, and the job that
// waits for them; what became of earlier elements without a word goes into their runs' attempts.
// Can be killed at any moment and called again. How many elements Slurm then has; 0: nothing is
// left to do.
// Errors: Slurm is not there, does not answer, or refuses the first array; files that cannot be
// written. REQUIRES: files.root is locked.
StatusOr<int> SubmitWhatIsLeft(const SlurmSweep& sweep, Submitter submitter);

// The command lines of the arrays that would be submitted if Slurm had nothing of the sweep.
StatusOr<std::string> DrySubmission(const SlurmSweep& sweep);

// Prints a line for the start and the end of each run until Slurm has no job of the sweep any more.
// kStopped: by a signal; the jobs stay. To be called by a process with one thread.
Status FollowJobs(const Plan& plan, const SweepFiles& files);

// What Slurm says of the runs that it has: "pending (Priority)", "running on node1", by folder.
// Asks nobody when the folder has nothing of Slurm.
StatusOr<std::map<std::string, std::string>> JobStates(const SweepFiles& files);

// Cancels all jobs of the sweep, and says how many elements that were.
Status CancelJobs(const SweepFiles& files);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SLURM_SCHEDULER_H_
