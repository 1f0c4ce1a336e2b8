#ifndef ELASTOR_LAUNCHER_SLURM_ELEMENT_H_
#define ELASTOR_LAUNCHER_SLURM_ELEMENT_H_

#include "core/base/status.h"
#include "launcher/run_folder.h"

namespace elastor {

// Runs an array's element, which its batch script becomes: one attempt of its run, inside the job.
// Slurm sends SIGUSR1 before a time limit or a preemption; the run then writes a checkpoint and
// ends. After that, and after a failure that another attempt may not meet, Slurm is asked to queue
// this element again, and only this one. After SIGTERM, by which Slurm ends jobs, it is left to
// Slurm and to the launcher's next pass. A run that is done, or that is not to be tried again, is
// not started.
//
// An older attempt whose node was lost may still live. It is fenced off twice: it kills its ranks
// as soon as it sees that it is superseded, for which this one waits; and while the run's folder is
// locked, this one waits for as long as ranks wait for lost peers, and then ends.
//
// Errors are the attempt's, as the exit code it ended with. To be called once, by a process with
// one thread, inside a job of Slurm.
Status RunElement(const SweepFiles& files, int array_number);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SLURM_ELEMENT_H_
