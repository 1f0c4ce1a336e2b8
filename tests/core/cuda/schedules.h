#ifndef ELASTOR_TESTS_CORE_CUDA_SCHEDULES_H_
#define ELASTOR_TESTS_CORE_CUDA_SCHEDULES_H_

#include <functional>

namespace elastor::cuda {

// Calls `run` once under each of the emulation's default schedules, or under what an argument says:
// --schedule=NAME, or --schedule=all; once on a device. Returns the first result that is not 0.
int RunUnderSchedules(int argc, char** argv, const std::function<int()>& run);

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_SCHEDULES_H_
