#ifndef ELASTOR_CORE_PROCESS_STOP_SIGNALS_H_
#define ELASTOR_CORE_PROCESS_STOP_SIGNALS_H_

namespace elastor {

// SIGINT, SIGTERM and SIGUSR1 ask a process to stop. By default they would end it at once; a
// process that ends within MPI_Init can leave mpirun waiting for ever.

// Remembers these signals from now until the process ends, so that a run can write a checkpoint and
// leave in order. The second signal of a kind ends the process as it would by default.
void RememberStopSignals();

// Makes such a signal, even one already remembered, end the process with code 75, and with a line
// if `speaks`. For work that has nothing to save. SIGTERM has a line only with speaks_of_sigterm: a
// launcher sends it to the ranks of a job in which one has failed and told why.
void ExitOnStopSignals(bool speaks, bool speaks_of_sigterm = true);

// Returns the first signal that came, or 0.
int StopSignal();
// Returns whether SIGTERM came, the signal with which launchers end the ranks of a job.
bool Terminated();

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_STOP_SIGNALS_H_
