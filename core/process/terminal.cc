#include "core/process/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace elastor {
namespace {

constexpr std::string_view kLaunchers[] = {"mpirun", "mpiexec", "orterun", "prterun", "srun"};

// 0: not a terminal.
int ColumnsOf(int descriptor) {
  constexpr int kUnknown = 80;
  if (isatty(descriptor) != 1) return 0;
  winsize size;
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknown;
}

struct Process {
  std::string name;
  pid_t parent = 0;
};

// /proc/PID/stat: "PID (name) state parent ...", where the name may hold anything.
Process ReadProcess(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');  // nothing when it has ended meanwhile
  const size_t begin = text.find('('), end = text.rfind(')');
  if (begin == text.npos || end == text.npos || end + 4 >= text.size()) return {};
  return {text.substr(begin + 1, end - begin - 1), std::atoi(text.c_str() + end + 4)};
}

// Returns the columns of the launcher's terminal, to which this process's stderr goes.
int LauncherColumns() {
  constexpr int kMostAncestors = 8;
  pid_t pid = getppid();
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    const Process process = ReadProcess(pid);
    if (std::ranges::find(kLaunchers, process.name) == std::end(kLaunchers)) {
      pid = process.parent;
      continue;
    }
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/2";
    const int descriptor = open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return 0;
    const int columns = ColumnsOf(descriptor);
    close(descriptor);
    return columns;
  }
  return 0;
}

}  // namespace

int TerminalColumns() {
  const char* const term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") return 0;
  if (const int columns = ColumnsOf(STDERR_FILENO); columns > 0) return columns;
  struct stat info;
  const bool piped =
      fstat(STDERR_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
  return piped ? LauncherColumns() : 0;
}

}  // namespace elastor
