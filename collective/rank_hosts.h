#ifndef ELASTOR_COLLECTIVE_RANK_HOSTS_H_
#define ELASTOR_COLLECTIVE_RANK_HOSTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/leaves.h"
#include "core/base/status.h"

namespace elastor {

class Communicator;

// Which ranks of a job are on one host, and by which rank of each host messages for a rank of
// another host go (parallel.by_host). Any assignment of ranks to hosts works.
class RankHosts {
 public:
  // host_of: by rank, a number that the ranks of one host have in common. Hosts are numbered anew,
  // in the order of their first ranks.
  explicit RankHosts(std::span<const uint64_t> host_of);
  // As many ranks on every host, one host after the other; the last may have fewer.
  static RankHosts InOrder(int ranks, int ranks_per_host);

  int hosts() const { return static_cast<int>(ranks_.size()); }
  int HostOf(int rank) const { return host_of_[rank]; }
  // Ascending.
  std::span<const int> RanksOf(int host) const { return ranks_[host]; }
  // Returns whether there are several hosts, and one has several ranks.
  bool ShareHosts() const { return hosts() > 1 && ranks_.size() < host_of_.size(); }

  // Returns the rank of `host` that gathers what the host's ranks send to `rank`, and hands out
  // what comes back: `rank` itself on its own host. Ranks of equal hosts meet by their numbers on
  // them, so that a rank has one partner on every other host.
  int Gatherer(int host, int rank) const;

 private:
  std::vector<int> host_of_;             // by rank
  std::vector<int> number_;              // of a rank on its host
  std::vector<std::vector<int>> ranks_;  // by host
};

// Returns the canonical nodes of the leaves of every host's ranks, by host, ascending. Ranks that
// follow each other make common nodes.
std::vector<std::vector<Range>> NodesOfHosts(const RankHosts& hosts, int ranks, int64_t leaves);
// Returns the number of the node in which a leaf lies. REQUIRES: it lies in one.
int NumberOfNode(const std::vector<Range>& nodes, int64_t leaf);
// A mask of 64 bits has room for the nodes of a host.
inline constexpr size_t kMostHostNodes = 64;
// Returns whether vectors go by host: it spares some, and every host has few nodes.
bool GoesByHost(const RankHosts& hosts, int ranks, int64_t leaves);

// Returns the hosts of a job's ranks (Communicator::host), and has the communicator note them.
// Collective.
StatusOr<RankHosts> FindHosts(Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_RANK_HOSTS_H_
