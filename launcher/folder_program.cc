#include "launcher/folder_program.h"

#include <cstdio>

#include "core/base/log.h"
#include "core/process/build_info.h"
#include "core/process/command_line.h"
#include "core/process/standard_streams.h"

namespace elastor {

int RunFolderProgram(int argc, char** argv, const std::string& name, const std::string& usage,
                     const std::string& source_file,
                     const std::function<Status(const std::vector<std::string>&)>& run) {
  PrepareStandardStreams();
  StartLog(argv[0]);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  Status status;
  if (const StatusOr<CommandLine> parsed = ParseCommandLine(arguments, source_file, Folders::kAny);
      !parsed.ok()) {
    status = parsed.status();
  } else if (parsed.value().help) {
    status = WriteToStdout(name + " " + usage + "\n" + FlagsHelp(source_file));
  } else if (parsed.value().version) {
    status = WriteToStdout(VersionText(name));
  } else {
    status = run(parsed.value().folders);
  }
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", name.c_str(), status.message().c_str());
  return static_cast<int>(status.code());
}

}  // namespace elastor
