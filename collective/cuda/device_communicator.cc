#include "collective/cuda/device_communicator.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "collective/cuda/nccl_backend.h"
#include "glog/logging.h"

namespace elastor::cuda {
namespace internal {

StatusOr<std::pair<int, int>> RanksOnOneDevice(Communicator* host, const std::string& identity) {
  constexpr size_t kLength = 64;
  CHECK_LT(identity.size(), kLength);
  char mine[kLength] = {};
  std::memcpy(mine, identity.data(), identity.size());
  std::vector<char> all(kLength * host->size());
  const std::vector<int64_t> bytes(host->size(), kLength);
  ELASTOR_RETURN_IF_ERROR(host->AllGatherV(Phase::kSetup, mine, all.data(), bytes));
  std::map<std::string_view, int> first_rank;
  for (int rank = 0; rank < host->size(); ++rank) {
    const auto [entry, first] = first_rank.emplace(all.data() + rank * kLength, rank);
    if (!first) return std::pair(entry->second, rank);
  }
  return std::pair(-1, -1);
}

StatusOr<bool> EnvironmentAllowsSharing(Communicator* host) {
  const char* several = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool allowed = std::getenv("NCCL_HOSTID") != nullptr ||
                       (several != nullptr && std::string_view(several) == "1");
  int64_t refusing = allowed ? 0 : 1;
  ELASTOR_RETURN_IF_ERROR(host->AllReduceMax(Phase::kSetup, {&refusing, 1}));
  return refusing == 0;
}

}  // namespace internal

StatusOr<std::unique_ptr<DeviceCommunicator>> MakeNcclCommunicator(Communicator* host,
                                                                   double deadline_seconds) {
  if (!internal::HaveNccl()) {
    return UserError("NCCL: not in this build; build with --config=cuda");
  }
  if (host->size() == 1) return MakeHostDeviceCommunicator(host);
  return internal::StartNccl(host, deadline_seconds);
}

StatusOr<std::unique_ptr<DeviceCommunicator>> MakeDeviceCommunicator(Communicator* host,
                                                                     double deadline_seconds) {
  if (host->size() == 1 || !internal::HaveNccl()) return MakeHostDeviceCommunicator(host);
  std::pair<int, int> sharing;
  ELASTOR_ASSIGN_OR_RETURN(sharing, internal::RanksOnOneDevice(host, internal::DeviceIdentity()));
  if (sharing.first >= 0) {
    bool allowed = false;
    ELASTOR_ASSIGN_OR_RETURN(allowed, internal::EnvironmentAllowsSharing(host));
    if (!allowed) {
      LOG_IF(WARNING, host->rank() == 0)
          << "ranks " << sharing.first << " and " << sharing.second
          << " have one device, which NCCL refuses: all exchange goes through the host's memory";
      return MakeHostDeviceCommunicator(host);
    }
  }
  return internal::StartNccl(host, deadline_seconds);
}

}  // namespace elastor::cuda
