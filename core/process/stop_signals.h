#ifndef ELASTOR_CORE_PROCESS_STOP_SIGNALS_H_
#define ELASTOR_CORE_PROCESS_STOP_SIGNALS_H_

namespace elastor {

// SIGINT, SIGTERM and SIGUSR1 ask a process to stop. By default they would end it at once; ended
// within MPI_Init it can leave mpirun waiting for ever.

// From here on, until the process ends, they are remembered, so that a run can write a checkpoint
// and leave in order. The second signal of a kind ends the process as it would without this.
void RememberStopSignals();

// From here on such a signal, or one that is remembered already, ends the process with code 75, and
// with a line when the process `speaks`: for work that has nothing to save.
void ExitOnStopSignals(bool speaks);

// The first signal that came, or 0.
int StopSignal();
// Whether a SIGTERM came: the one that launchers end the ranks of a job with.
bool Terminated();

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_STOP_SIGNALS_H_
