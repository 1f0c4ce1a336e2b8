#ifndef ELASTOR_TESTS_COLLECTIVE_CUDA_DEVICE_COMMUNICATOR_SUITE_H_
#define ELASTOR_TESTS_COLLECTIVE_CUDA_DEVICE_COMMUNICATOR_SUITE_H_

#include <functional>
#include <vector>

#include "collective/cuda/device_communicator.h"

namespace elastor::cuda {

// One suite for every device communicator. The test that links it says which numbers of ranks it
// runs on, and calls `test` once for every rank that lives in this process.
std::vector<int> SuiteRanks();
void OnEveryRank(int ranks, const std::function<void(DeviceCommunicator&, Stream&)>& test);

// Far above what a call takes, so that a rank that fails an assertion ends the test.
inline constexpr double kSuiteDeadlineSeconds = 600;

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_COLLECTIVE_CUDA_DEVICE_COMMUNICATOR_SUITE_H_
