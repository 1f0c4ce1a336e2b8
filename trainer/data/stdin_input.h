#ifndef ELASTOR_TRAINER_DATA_STDIN_INPUT_H_
#define ELASTOR_TRAINER_DATA_STDIN_INPUT_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// Path of the input that stands for stdin once KeepStdin was called.
inline constexpr char kStdinPath[] = "/dev/stdin";

// Makes stdin a file that can be opened several times, as inputs are. Copies the pipe's data, or
// the rest of a file, to `path` and unlinks it, so that the copy vanishes with the process. Returns
// true when it was copied: another run then reads another file. User error when stdin is a
// terminal.
StatusOr<bool> KeepStdin(const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_STDIN_INPUT_H_
