#ifndef ELASTOR_TRAINER_MODES_INVOCATION_H_
#define ELASTOR_TRAINER_MODES_INVOCATION_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/modes/mode.h"
#include "trainer/supervise/hosts.h"

namespace elastor {

// What the command line asks for.
struct Invocation {
  std::string help;  // what --help, --version or --list_models prints; empty: none was given
  const Mode* mode = nullptr;  // null beside help
  ModeCall call;
  std::vector<Host> hosts;  // with --supervise
};

// Reads and checks everything that can be checked without other ranks and without data. User error
// in one line.
StatusOr<Invocation> ReadInvocation(std::span<const std::string> arguments);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_MODES_INVOCATION_H_
