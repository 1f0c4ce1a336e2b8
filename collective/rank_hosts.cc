#include "collective/rank_hosts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "collective/communicator.h"
#include "core/base/leaf_stack.h"
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

std::vector<std::vector<Range>> NodesOfHosts(const RankHosts& hosts, int ranks, int64_t leaves) {
  std::vector<std::vector<Range>> nodes(hosts.hosts());
  for (int r = 0; r < ranks;) {
    const int host = hosts.HostOf(r);
    Range run = LeavesOfRank(r, ranks, leaves);
    for (++r; r < ranks && hosts.HostOf(r) == host; ++r) {
      run.end = LeavesOfRank(r, ranks, leaves).end;
    }
    const std::vector<Range> of_run = CanonicalNodes(run);
    nodes[host].insert(nodes[host].end(), of_run.begin(), of_run.end());
  }
  return nodes;
}

int NumberOfNode(const std::vector<Range>& nodes, int64_t leaf) {
  const auto after = std::partition_point(nodes.begin(), nodes.end(),
                                          [&](const Range& node) { return node.end <= leaf; });
  return static_cast<int>(after - nodes.begin());
}

bool GoesByHost(const RankHosts& hosts, int ranks, int64_t leaves) {
  return hosts.ShareHosts() &&
         std::ranges::all_of(NodesOfHosts(hosts, ranks, leaves),
                             [](const auto& nodes) { return nodes.size() <= kMostHostNodes; });
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
