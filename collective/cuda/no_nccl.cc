// A build without CUDA: its emulated devices exchange through the host's memory.
#include "collective/cuda/nccl_backend.h"
#include "core/base/log.h"

namespace elastor::cuda::internal {

bool HaveNccl() { return false; }
std::string DeviceIdentity() { return ""; }

StatusOr<std::unique_ptr<DeviceCommunicator>> StartNccl(Communicator*, double) {
  LOG(FATAL) << "no NCCL in this build";
}

}  // namespace elastor::cuda::internal
