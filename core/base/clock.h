#ifndef ELASTOR_CORE_BASE_CLOCK_H_
#define ELASTOR_CORE_BASE_CLOCK_H_

#include <chrono>

namespace elastor {

// Wall time that never goes back.
using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_CLOCK_H_
