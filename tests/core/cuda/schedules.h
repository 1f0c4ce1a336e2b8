#ifndef ELASTOR_TESTS_CORE_CUDA_SCHEDULES_H_
#define ELASTOR_TESTS_CORE_CUDA_SCHEDULES_H_

#include <functional>

namespace elastor::cuda {

// Calls `run` once under every schedule of the emulation, or under the one that an argument
// --schedule=NAME names; once on a device. Returns the first result that is not 0.
int RunUnderSchedules(int argc, char** argv, const std::function<int()>& run);

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_CORE_CUDA_SCHEDULES_H_
