#ifndef ELASTOR_CORE_PROCESS_STANDARD_STREAMS_H_
#define ELASTOR_CORE_PROCESS_STANDARD_STREAMS_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// To be called before any file is opened. A standard stream that the parent closed becomes
// /dev/null, else the next file that is opened would get its number and its text. From now on a
// reader that leaves (`| head`) is an error of the write and does not end the process by SIGPIPE.
void PrepareStandardStreams();

// The text on stdout, handed to the system before this returns. Ok when the reader has left: it has
// what it wanted. Otherwise a machine error that names stdout (a full disk).
Status WriteToStdout(const std::string& text);

// The text on stderr, handed to the system before this returns, as far as somebody reads: once this
// process is asked to stop (stop_signals.h) it waits for no reader, for mpirun reads nothing more
// of ranks that it ends, and a rank that waited for it would be killed before its checkpoint.
void WriteToStderr(const std::string& text);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_STANDARD_STREAMS_H_
