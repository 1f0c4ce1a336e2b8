#ifndef ELASTOR_TRAINER_SUPERVISE_HOSTS_H_
#define ELASTOR_TRAINER_SUPERVISE_HOSTS_H_

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

struct Host {
  std::string name;
  int ranks = 0;  // at most
};

// Why a name has no address; empty: it has one.
using HostLookup = std::function<std::string(const std::string& name)>;
std::string LookUpHost(const std::string& name);

// "a:8,b:8", as of mpirun's --host; without a number one rank. User error: an empty or repeated
// name, no positive number, more than a million ranks, or a name without an address.
StatusOr<std::vector<Host>> ParseHosts(const std::string& text,
                                       const HostLookup& why_unknown = LookUpHost);
// The lines of mpirun's --hostfile, "a slots=8", without comments; the errors are the same.
StatusOr<std::vector<Host>> ReadHostfile(const std::string& path,
                                         const HostLookup& why_unknown = LookUpHost);

// The hosts on which a job of at most `ranks` runs, filled in order.
std::vector<Host> Fill(const std::vector<Host>& hosts, int ranks);
int RanksOf(const std::vector<Host>& hosts);
std::string ToText(const std::vector<Host>& hosts);  // "a:8,b:8"

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SUPERVISE_HOSTS_H_
