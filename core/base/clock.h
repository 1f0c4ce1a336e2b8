#ifndef ELASTOR_CORE_BASE_CLOCK_H_
#define ELASTOR_CORE_BASE_CLOCK_H_

#include <chrono>

namespace elastor {

// Wall time that never goes back.
using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns whether so many minutes are over; never with 0.
inline bool DueAfter(double minutes, Clock::time_point since) {
  constexpr double kSecondsPerMinute = 60;
  return minutes > 0 && SecondsSince(since) >= minutes * kSecondsPerMinute;
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CLOCK_H_
