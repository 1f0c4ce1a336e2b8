#include "core/process/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/process/stop_signals.h"

namespace elastor {

void PrepareStandardStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
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

void WriteToStderr(const std::string& text) {
  constexpr int kLookMilliseconds = 100;
  std::fflush(stderr);
  for (std::string_view left = text; !left.empty();) {
    pollfd stream = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    const int ready = poll(&stream, 1, kLookMilliseconds);
    if (ready == 0 && StopSignal() != 0) return;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    // What a ready pipe takes without waiting.
    const ssize_t count =
        write(STDERR_FILENO, left.data(), std::min<size_t>(left.size(), PIPE_BUF));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return;
    left.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
}

}  // namespace elastor
