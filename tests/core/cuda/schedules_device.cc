#include <gtest/gtest.h>

#include "tests/core/cuda/schedules.h"

namespace elastor::cuda {

int RunUnderSchedules(int, char**, const std::function<int()>& run) {
  // A device does not survive a fork: the child of a death test begins anew.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  return run();
}

}  // namespace elastor::cuda
