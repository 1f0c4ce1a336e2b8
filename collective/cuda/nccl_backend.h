#ifndef ELASTOR_COLLECTIVE_CUDA_NCCL_BACKEND_H_
#define ELASTOR_COLLECTIVE_CUDA_NCCL_BACKEND_H_

#include <memory>
#include <string>
#include <utility>

#include "collective/cuda/device_communicator.h"

// The implementation behind device_communicator.h. Declares the functions that nccl.cc implements
// in a build for CUDA and no_nccl.cc in every other build, and the parts of the choice between NCCL
// and the host, which tests call one by one.

namespace elastor::cuda::internal {

bool HaveNccl();
// Returns the open device's UUID, which is the same for ranks that share the device. Empty without
// CUDA.
std::string DeviceIdentity();
// Starts NCCL over `host`. REQUIRES: HaveNccl, two ranks or more.
StatusOr<std::unique_ptr<DeviceCommunicator>> StartNccl(Communicator* host,
                                                        double deadline_seconds);

// Returns the lowest pair of ranks with the same identity (at most 63 characters), or {-1, -1} when
// all differ. Collective; the result is the same on all ranks.
StatusOr<std::pair<int, int>> RanksOnOneDevice(Communicator* host, const std::string& identity);
// Returns the text that NCCL compares between ranks to find two on one device: the device, and the
// host where NCCL_HOSTID in the environment gives it another name. At most 63 characters for a
// UUID.
std::string IdentityForNccl(const std::string& device);

}  // namespace elastor::cuda::internal

#endif  // ELASTOR_COLLECTIVE_CUDA_NCCL_BACKEND_H_
