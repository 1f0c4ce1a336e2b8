#ifndef ELASTOR_COLLECTIVE_CUDA_NCCL_BACKEND_H_
#define ELASTOR_COLLECTIVE_CUDA_NCCL_BACKEND_H_

#include <memory>
#include <string>
#include <utility>

#include "collective/cuda/device_communicator.h"

// What nccl.cc provides in a build for CUDA and no_nccl.cc stands in for elsewhere, and the choice
// between NCCL and the host, apart for tests.

namespace elastor::cuda::internal {

bool HaveNccl();
// The open device's UUID, the same for ranks that share it. Empty without CUDA.
std::string DeviceIdentity();
// REQUIRES: HaveNccl, two ranks or more.
StatusOr<std::unique_ptr<DeviceCommunicator>> StartNccl(Communicator* host,
                                                        double deadline_seconds);

// Two ranks with the same identity (of at most 63 characters), the lowest such pair; {-1, -1} when
// all differ. Collective; the same on all ranks.
StatusOr<std::pair<int, int>> RanksOnOneDevice(Communicator* host, const std::string& identity);
// Whether every rank's environment says that NCCL may put several ranks on one device. Collective.
StatusOr<bool> EnvironmentAllowsSharing(Communicator* host);

}  // namespace elastor::cuda::internal

#endif  // ELASTOR_COLLECTIVE_CUDA_NCCL_BACKEND_H_
