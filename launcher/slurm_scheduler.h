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

// A sweep through Slurm. No process need stay alive for it. The runs are elements of job arrays
// (launcher/slurm_array.h), and each element looks after itself (launcher/slurm_element.h). One
// more job waits until all of them have ended, then does the same as SubmitWhatIsLeft.

struct SlurmSweep {
  const Plan& plan;
  const SweepFiles& files;
  const Slurm& slurm;
  std::string trainer;
  std::vector<std::string> advance;  // the command of the job that waits for the arrays
};

// The submitter. Runs that a user cancelled are started again by the user's next command only.
enum class Submitter { kUser, kNobody };

// Submits every remaining run that Slurm does not have, in few job arrays, and the job that waits
// for them. Records in their runs' attempts how earlier elements ended that left no record. Can be
// killed at any moment and called again. Returns how many elements Slurm then has; 0: nothing is
// left to do. Error when Slurm is missing, does not answer or refuses the first array, or when
// files cannot be written. REQUIRES: files.root is locked.
StatusOr<int> SubmitWhatIsLeft(const SlurmSweep& sweep, Submitter submitter);

// Returns the command lines of the arrays that would be submitted if Slurm had no job of the sweep.
StatusOr<std::string> DrySubmission(const SlurmSweep& sweep);

// Prints a line for the start and the end of each run until Slurm has no job of the sweep any more.
// kStopped: by a signal; the jobs stay. To be called by a process with one thread.
Status FollowJobs(const Plan& plan, const SweepFiles& files);

// Returns, by folder, the states of the runs that Slurm has: "pending (Priority)", "running on
// node1". Does not ask Slurm when the folder has no Slurm arrays.
StatusOr<std::map<std::string, std::string>> JobStates(const SweepFiles& files);

// Cancels all jobs of the sweep, and prints how many elements that were.
Status CancelJobs(const SweepFiles& files);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SLURM_SCHEDULER_H_
