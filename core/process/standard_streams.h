#ifndef ELASTOR_CORE_PROCESS_STANDARD_STREAMS_H_
#define ELASTOR_CORE_PROCESS_STANDARD_STREAMS_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// Call it before any file is opened. A standard stream that the parent closed becomes /dev/null;
// otherwise the next opened file would get its number and its text. Afterwards a reader that leaves
// (`| head`) makes the write fail and does not end the process by SIGPIPE. Nor does a limit on the
// size of files (`ulimit -f`) by SIGXFSZ: it is an error like a full disk.
void PrepareStandardStreams();

// Writes the text to stdout; the system has it when this returns. Ok also if the reader has left,
// since it needs no more. Other failures (a full disk) are a machine error that names stdout.
Status WriteToStdout(const std::string& text);

// Writes the text to stderr; the system has it when this returns, as far as somebody reads it. Once
// this process is asked to stop (stop_signals.h) it waits for no reader: mpirun stops reading from
// ranks that it ends, and a waiting rank would be killed before its checkpoint.
void WriteToStderr(const std::string& text);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_STANDARD_STREAMS_H_
