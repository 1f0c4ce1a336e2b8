#ifndef ELASTOR_TRAINER_SUPERVISE_HOSTS_H_
#define ELASTOR_TRAINER_SUPERVISE_HOSTS_H_

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

struct Host {
  std::string name;
  int ranks = 0;  // most ranks on this host
};

// Returns why a name has no address, or empty if it has one.
using HostLookup = std::function<std::string(const std::string& name)>;
std::string LookUpHost(const std::string& name);

// Parses hosts in the syntax of mpirun's --host, "a:8,b:8"; a host without a number has one rank.
// User error: an empty or repeated name, no positive number, more than a million ranks, or a name
// without an address.
StatusOr<std::vector<Host>> ParseHosts(const std::string& text,
                                       const HostLookup& why_unknown = LookUpHost);
// Reads a file in the syntax of mpirun's --hostfile, "a slots=8", without comments. The errors are
// those of ParseHosts.
StatusOr<std::vector<Host>> ReadHostfile(const std::string& path,
                                         const HostLookup& why_unknown = LookUpHost);

// Returns the hosts on which a job of at most `ranks` ranks runs, filled in order.
std::vector<Host> Fill(const std::vector<Host>& hosts, int ranks);
int RanksOf(const std::vector<Host>& hosts);
std::string ToText(const std::vector<Host>& hosts);  // "a:8,b:8"

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SUPERVISE_HOSTS_H_
