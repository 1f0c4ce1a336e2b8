#include "trainer/run/stop_signals.h"

#include <atomic>
#include <csignal>

namespace elastor {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};

std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // for use in a signal handler

void Remember(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  struct sigaction action = {};
  action.sa_handler = Remember;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

StopSignals::~StopSignals() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

int StopSignals::received() const { return first_signal; }

}  // namespace elastor
