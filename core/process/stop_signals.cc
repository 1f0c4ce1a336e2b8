#include "core/process/stop_signals.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "core/base/status.h"

namespace elastor {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};

enum Reaction { kRemember, kExit, kSpeakButOfSigtermAndExit, kSpeakAndExit };

std::atomic<int> first_signal = 0;
std::atomic<bool> terminated = false;
std::atomic<int> reaction = kRemember;
// For use in a signal handler.
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void Exit(int signal) {
  const char* const line = signal == SIGINT ? "trainer: stopped by SIGINT; the work is not done\n"
                           : signal == SIGTERM
                               ? "trainer: stopped by SIGTERM; the work is not done\n"
                               : "trainer: stopped by SIGUSR1; the work is not done\n";
  const bool speaks =
      reaction == kSpeakAndExit || (reaction == kSpeakButOfSigtermAndExit && signal != SIGTERM);
  // Nobody may read stderr any more, and the pipe may be full.
  pollfd stream = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (speaks && poll(&stream, 1, /*timeout=*/0) == 1 &&
      write(STDERR_FILENO, line, std::strlen(line)) < 0) {
    // There is nobody to tell.
  }
  _exit(static_cast<int>(StatusCode::kStopped));
}

void Handle(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  if (signal == SIGTERM) terminated = true;
  if (reaction != kRemember) Exit(signal);
}

}  // namespace

void RememberStopSignals() {
  first_signal = 0;
  terminated = false;
  reaction = kRemember;
  struct sigaction action = {};
  action.sa_handler = Handle;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

void ExitOnStopSignals(bool speaks, bool speaks_of_sigterm) {
  reaction = !speaks ? kExit : speaks_of_sigterm ? kSpeakAndExit : kSpeakButOfSigtermAndExit;
  if (first_signal != 0) Exit(first_signal);
}

int StopSignal() { return first_signal; }

bool Terminated() { return terminated; }

}  // namespace elastor
