#include "collective/rank_hosts.h"

#include <map>
#include <string>
#include <utility>

#include "collective/communicator.h"
#include "xxhash.h"

namespace elastor {

RankHosts::RankHosts(std::span<const uint64_t> host_of) {
  std::map<uint64_t, int> numbers;
  for (size_t r = 0; r < host_of.size(); ++r) {
    const int host =
        numbers.try_emplace(host_of[r], static_cast<int>(numbers.size())).first->second;
    if (host == hosts()) ranks_.emplace_back();
    host_of_.push_back(host);
    number_.push_back(static_cast<int>(ranks_[host].size()));
    ranks_[host].push_back(static_cast<int>(r));
  }
}

RankHosts RankHosts::InOrder(int ranks, int ranks_per_host) {
  std::vector<uint64_t> host_of;
  for (int r = 0; r < ranks; ++r) host_of.push_back(r / ranks_per_host);
  return RankHosts(host_of);
}

int RankHosts::Gatherer(int host, int rank) const {
  if (host_of_[rank] == host) return rank;
  return ranks_[host][number_[rank] % ranks_[host].size()];
}

StatusOr<RankHosts> FindHosts(Communicator& communicator) {
  std::vector<uint64_t> hosts(communicator.size());
  const std::string name = communicator.host();
  const uint64_t mine = XXH3_64bits(name.data(), name.size());
  const std::vector<int64_t> bytes(communicator.size(), sizeof mine);
  ELASTOR_RETURN_IF_ERROR(communicator.AllGatherV(Phase::kSetup, &mine, hosts.data(), bytes));
  RankHosts found(hosts);
  std::vector<int> host_of;
  for (int r = 0; r < communicator.size(); ++r) host_of.push_back(found.HostOf(r));
  communicator.NoteHosts(std::move(host_of));
  return found;
}

}  // namespace elastor
