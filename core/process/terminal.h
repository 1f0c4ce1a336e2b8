#ifndef ELASTOR_CORE_PROCESS_TERMINAL_H_
#define ELASTOR_CORE_PROCESS_TERMINAL_H_

namespace elastor {

// The width of the terminal that shows this process's stderr, in columns; 0: none does. It may be
// that of a launcher: mpirun, srun and their like read their ranks' stderr through pipes and hand
// it on to their own, which is looked up here among this process's ancestors. TERM=dumb is none.
int TerminalColumns();

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_TERMINAL_H_
