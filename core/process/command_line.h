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
  bool version = false;                // --version was given
  std::vector<std::string> folders;    // arguments that are not flags
};

enum class Folders { kNone, kAny };  // arguments that a program takes besides flags

// Sets gflags' flags from the arguments after the program's name. Replaces gflags' own parser,
// which keeps only the last of several --set and ends the process, on every rank, with a report of
// its own at the first mistake.
//
// Takes --name=value, --name value, --switch, --noswitch and -h for --help. --flagfile=F puts the
// lines of F in its place: one --name=value each; blank lines and lines that begin with # are left
// out; a flag file may name another. A later value replaces an earlier one, but values of a flag in
// `lists` are joined by commas.
//
// User error in one line, which names the file and line in a flag file; flags met before stay set.
// Errors are also: an argument that is not UTF-8, because all that a run writes is; a value, or the
// field's value of a --set, that begins with ~/ and so escaped the shell; with Folders::kNone an
// argument that is no flag. `source_file` defines the program's own flags, which a message names.
StatusOr<CommandLine> ParseCommandLine(std::span<const std::string> arguments,
                                       const std::string& source_file,
                                       Folders folders = Folders::kNone,
                                       std::span<const char* const> lists = {});
// Returns that error.
Status NoFlag(const std::string& argument);  // returns the error for an argument that is no flag

// Returns the text of --help: the program's own flags, one a line, with meaning and default.
std::string FlagsHelp(const std::string& source_file);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_COMMAND_LINE_H_
