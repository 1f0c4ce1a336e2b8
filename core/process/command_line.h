#ifndef ELASTOR_CORE_PROCESS_COMMAND_LINE_H_
#define ELASTOR_CORE_PROCESS_COMMAND_LINE_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

struct CommandLine {
  std::vector<std::string> overrides;  // the values of all --set, in order
  bool help = false;                   // --help was given
  std::string help_topic;              // TOPIC of --help=TOPIC; empty without one
  std::vector<std::string> folders;    // arguments that are not flags
};

enum class Folders { kNone, kAny };  // arguments that a program takes besides flags

// Sets gflags' flags from the arguments after the program's name. It replaces gflags' own parser,
// which keeps only the last of several --set and, at the first mistake, ends the process on every
// rank with its own report.
//
// --name=value, --name value, --switch, --noswitch. --flagfile=F puts the lines of F in its place:
// one --name=value each, blank lines and lines starting with # aside; a flag file may name another.
// Later values win. User error in one line, naming the file and line where it is in a file; flags
// met before stay set. It is also an error if an argument is not UTF-8, as a run's outputs must be,
// or if a value (with --set, the field's value) begins with ~/, which the shell did not expand.
// `source_file`: the file that defines the program's own flags, which a message names. With
// Folders::kNone an argument that is no flag is an error.
StatusOr<CommandLine> ParseCommandLine(std::span<const std::string> arguments,
                                       const std::string& source_file,
                                       Folders folders = Folders::kNone);
Status NoFlag(const std::string& argument);  // returns the error for an argument that is no flag

// Returns the text of --help: the program's own flags, one a line, with meaning and default.
std::string FlagsHelp(const std::string& source_file);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_COMMAND_LINE_H_
