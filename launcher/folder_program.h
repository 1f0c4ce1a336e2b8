#ifndef ELASTOR_LAUNCHER_FOLDER_PROGRAM_H_
#define ELASTOR_LAUNCHER_FOLDER_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// Runs the main function of a program whose arguments are flags, defined in `source_file`, and
// folders of runs. An argument that does not begin with a dash is a folder. Prints errors as "NAME:
// ..." and --help as "NAME USAGE" and the flags. Returns the exit code.
int RunFolderProgram(int argc, char** argv, const std::string& name, const std::string& usage,
                     const std::string& source_file,
                     const std::function<Status(const std::vector<std::string>&)>& run);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_FOLDER_PROGRAM_H_
