#ifndef ELASTOR_TRAINER_DATA_STDIN_INPUT_H_
#define ELASTOR_TRAINER_DATA_STDIN_INPUT_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// The input that stands for stdin once KeepStdin was called.
inline constexpr char kStdinPath[] = "/dev/stdin";

// Makes stdin a file that can be opened again, as inputs are: what a pipe brings, or the rest of a
// file, is copied to `path`, which has no name any more when this returns, so that it ends with the
// process. True when it was copied: another run reads another file. User error when stdin is a
// terminal.
StatusOr<bool> KeepStdin(const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_STDIN_INPUT_H_
