#ifndef ELASTOR_CORE_PROCESS_TERMINAL_H_
#define ELASTOR_CORE_PROCESS_TERMINAL_H_

namespace elastor {

// Returns the width in columns of the terminal that shows this process's stderr; 0 if no terminal
// does. It may be a launcher's terminal: mpirun, srun and similar launchers read their ranks'
// stderr through pipes and pass it on to their own stderr. The launcher is searched among this
// process's ancestors. TERM=dumb counts as no terminal.
int TerminalColumns();

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_TERMINAL_H_
