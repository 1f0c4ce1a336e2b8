#include "collective/pause.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>

namespace elastor {
namespace {

constexpr auto kYieldTime = std::chrono::microseconds(1000);
constexpr auto kShortestNap = std::chrono::microseconds(20);
// It bounds how long a message in flight is left alone.
constexpr auto kLongestNap = std::chrono::microseconds(200);

constexpr unsigned long kNapSlackNanoseconds = 1000;
constexpr uint64_t kTurnNanoseconds = 100'000;  // the least that the kernel takes

thread_local bool beside_computation = false;

// The kernel's struct sched_attr, whose header does not go with <sched.h>.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};

}  // namespace

void PauseAfterWaiting(Clock::duration waited) {
  if (!beside_computation && waited < kYieldTime) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 8, kShortestNap, kLongestNap));
  }
}

void WaitBesideComputation() {
  beside_computation = true;
  prctl(PR_SET_TIMERSLACK, kNapSlackNanoseconds);
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof attributes;
  attributes.runtime = kTurnNanoseconds;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);  // a wish
}

}  // namespace elastor
