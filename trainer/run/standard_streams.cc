#include "trainer/run/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace elastor {

void PrepareStandardStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  // An open takes the lowest free number, so this ends with the first number above stderr's.
  int number = 0;
  while (number >= 0 && number <= STDERR_FILENO) number = open("/dev/null", O_RDWR);
  if (number >= 0) close(number);
}

Status WriteToStdout(const std::string& text) {
  std::fflush(stdout);
  for (std::string_view left = text; !left.empty();) {
    const ssize_t count = write(STDOUT_FILENO, left.data(), left.size());
    if (count >= 0) {
      left.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EPIPE) {
      return OkStatus();
    } else if (errno != EINTR) {
      return MachineError(std::string("stdout: cannot write: ") + std::strerror(errno));
    }
  }
  return OkStatus();
}

}  // namespace elastor
