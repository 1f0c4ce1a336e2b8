#include "collective/cuda/device_communicator.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "collective/cuda/nccl_backend.h"
#include "core/base/hash_text.h"
#include "core/base/log.h"

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

std::string IdentityForNccl(const std::string& device) {
  const char* const host = std::getenv("NCCL_HOSTID");
  return host == nullptr ? device : device + "/" + HashTextOf(host);
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
  ELASTOR_ASSIGN_OR_RETURN(
      sharing,
      internal::RanksOnOneDevice(host, internal::IdentityForNccl(internal::DeviceIdentity())));
  if (sharing.first >= 0) {
    if (host->rank() == 0) {
      LOG(WARNING)
          << "ranks " << sharing.first << " and " << sharing.second
          << " have one device, which NCCL refuses: all exchange goes through the host's memory";
    }
    return MakeHostDeviceCommunicator(host);
  }
  return internal::StartNccl(host, deadline_seconds);
}

}  // namespace elastor::cuda
