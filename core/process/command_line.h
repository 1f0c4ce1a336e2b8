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
  std::string help_topic;              // of --help=TOPIC; empty without one
  std::vector<std::string> folders;    // arguments that are no flags
};

enum class Folders { kNone, kAny };  // arguments that a program takes besides flags

// Sets gflags' flags from the arguments after the program's name. Instead of gflags' own parser
// because that keeps only the last of several --set, and ends the process, on every rank, with a
// report of its own at the first mistake.
//
// --name=value, --name value, --switch, --noswitch. --flagfile=F puts the lines of F in its place:
// one --name=value each, blank lines and lines starting with # aside; a flag file may name another.
// What comes later wins. User error in one line, naming the file and line where it is in a file;
// flags met before stay set. Errors too: an argument that is not UTF-8 (all that a run writes is),
// and a value, of --set the field's, that begins with ~/ and so escaped the shell. `source_file`:
// the file that defines the program's own flags, which a message names. Of Folders::kNone an
// argument that is no flag is an error.
StatusOr<CommandLine> ParseCommandLine(std::span<const std::string> arguments,
                                       const std::string& source_file,
                                       Folders folders = Folders::kNone);
Status NoFlag(const std::string& argument);  // that error

// The program's own flags, one a line with meaning and default, for --help.
std::string FlagsHelp(const std::string& source_file);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_COMMAND_LINE_H_
