#include "tests/faults/link_faults.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "core/base/log.h"
#include "tests/faults/moments.h"

namespace elastor {
namespace {

bool Hosts(const DisturbedJob& attempt, const std::string& command) {
  return std::system(("tests/faults/virtual_hosts.sh " + attempt.work + " " + command).c_str()) ==
         0;
}

// up: how they are made.
void OnTwoHosts(DisturbedJob* attempt, const std::string& up = "up") {
  CHECK(Hosts(*attempt, up)) << "no network namespaces";
  const std::string first = std::to_string((attempt->ranks + 1) / 2);
  const std::string second = std::to_string(attempt->ranks / 2);
  const std::string agent = attempt->work + "/on_host";
  attempt->agent = {agent, "elastor1"};
  attempt->hosts = "elastor1:" + first + ",elastor2:" + second;
  // The last three: as tools/environment.sh.
  const std::pair<std::string, std::string> settings[] = {{"plm", "rsh"},
                                                          {"plm_rsh_agent", agent},
                                                          {"oob_tcp_if_include", "10.79.0.0/24"},
                                                          {"btl_tcp_if_include", "10.79.0.0/24"},
                                                          {"oob_tcp_keepalive_time", "2"},
                                                          {"oob_tcp_keepalive_intvl", "1"},
                                                          {"oob_tcp_keepalive_probes", "3"}};
  for (const auto& [name, value] : settings) {
    attempt->mpirun.insert(attempt->mpirun.end(), {"--mca", name, value});
  }
  attempt->restore = [=, attempt = *attempt](int) { Hosts(attempt, "down"); };
}

// Does this to the hosts once rank 0 runs the trainer, and undoes it so many seconds later, whoever
// is left then: mpirun gives up a host of which it hears nothing for some 4 s.
void ForSomeTime(const std::string& what, double seconds, const std::string& undo,
                 DisturbedJob* attempt) {
  attempt->strike.act = [=, attempt = *attempt, done = false](
                            const Processes& processes,
                            bool* struck) mutable -> std::optional<double> {
    if (!done && !processes.ranks.contains(0)) return kAgainSeconds;
    *struck = true;
    Hosts(attempt, done ? undo : what);
    return std::exchange(done, true) ? std::nullopt : std::optional(seconds);
  };
}

}  // namespace

void CutLink(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  OnTwoHosts(attempt);
  attempt->what = "cut the link between two hosts";
  // A deadline below the keepalive's 5 s can leave mpirun for a quarter of an hour, which a
  // supervisor ends (docs/use/running.md, "A cut link").
  SetDeadlines(attempt->supervised ? 4 : 9, 10, attempt);
  OnRank(0, attempt, [attempt = *attempt](pid_t) -> std::optional<double> {
    Hosts(attempt, "cut");
    return std::nullopt;
  });
  // mpirun's own, when it notices first.
  attempt->codes_once = {3, 205, 1};
}

void BreakLink(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  OnTwoHosts(attempt);
  const double seconds = 0.2 + 2 * Share(random);
  attempt->what = "cut the link for " + std::to_string(seconds) + " s";
  ForSomeTime("cut", seconds, "heal", attempt);
  // A connection that is made just then Open MPI gives up.
  attempt->codes_once = {3};
  attempt->names = {"Start (setup"};
}

void SlowLink(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  OnTwoHosts(attempt);
  const std::string megabits = std::to_string(5 + Below(random, 50));
  const double seconds = 1 + 9 * Share(random);
  attempt->what = "a link of " + megabits + " Mbit/s for " + std::to_string(seconds) + " s";
  ForSomeTime("throttle " + megabits, seconds, "free", attempt);
}

void DelayedLink(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const size_t least = 1 + Below(random, 50);
  const std::string delays =
      std::to_string(least) + " " + std::to_string(least + Below(random, 51 - least));
  OnTwoHosts(attempt, "up " + delays);
  const double seconds = 1 + 9 * Share(random);
  attempt->what = "a link that delays by " + delays + " ms for " + std::to_string(seconds) + " s";
  ForSomeTime("delay", seconds, "prompt", attempt);
}

}  // namespace elastor
