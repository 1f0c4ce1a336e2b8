#ifndef ELASTOR_TRAINER_SUPERVISE_HOSTS_H_
#define ELASTOR_TRAINER_SUPERVISE_HOSTS_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

struct Host {
  std::string name;
  int ranks = 0;  // at most
};

// "a:8,b:8", as of mpirun's --host; without a number one rank. User error: an empty or repeated
// name, no positive number, or a name without an address.
StatusOr<std::vector<Host>> ParseHosts(const std::string& text);
// The lines of mpirun's --hostfile, "a slots=8", without comments; the errors are the same.
StatusOr<std::vector<Host>> ReadHostfile(const std::string& path);

// The hosts on which a job of at most `ranks` runs, filled in order.
std::vector<Host> Fill(const std::vector<Host>& hosts, int ranks);
int RanksOf(const std::vector<Host>& hosts);
std::string ToText(const std::vector<Host>& hosts);  // "a:8,b:8"

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SUPERVISE_HOSTS_H_
