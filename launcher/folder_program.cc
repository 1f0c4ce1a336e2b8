#include "launcher/folder_program.h"

#include <cstdio>

#include "glog/logging.h"
#include "trainer/run/command_line.h"
#include "trainer/run/standard_streams.h"

namespace elastor {

int RunFolderProgram(int argc, char** argv, const std::string& name, const std::string& usage,
                     const std::string& source_file,
                     const std::function<Status(const std::vector<std::string>&)>& run) {
  PrepareStandardStreams();
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  std::vector<std::string> flags, folders;
  for (int i = 1; i < argc; ++i) (argv[i][0] == '-' ? flags : folders).push_back(argv[i]);
  Status status;
  if (const StatusOr<CommandLine> parsed = ParseCommandLine(flags, source_file); !parsed.ok()) {
    status = parsed.status();
  } else if (parsed.value().help) {
    status = WriteToStdout(name + " " + usage + "\n" + FlagsHelp(source_file));
  } else {
    status = run(folders);
  }
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", name.c_str(), status.message().c_str());
  return static_cast<int>(status.code());
}

}  // namespace elastor
