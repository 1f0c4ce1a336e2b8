#ifndef ELASTOR_TESTS_FAULTS_FAULTS_H_
#define ELASTOR_TESTS_FAULTS_FAULTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/faults/job.h"

namespace elastor {

// What the faults need to know of an undisturbed run.
struct Undisturbed {
  double seconds = 0;  // of a job, from its start to its end
  int records = 0;     // lines of metrics.jsonl
  // Calls on files of the run and the data set, by rank (faulty_system.cc).
  std::vector<int64_t> boundaries;
};

// One job of a disturbed run, as it is without a fault; a fault changes it.
struct DisturbedJob {
  std::string run;   // the output directory
  std::string data;  // the prepared data set
  std::string work;  // for a fault's own files
  int ranks = 1;
  bool supervised = false;  // started by trainer --supervise, which starts it again
  uint64_t index = 0;       // of the disturbed run
  Undisturbed undisturbed;  // on so many ranks

  std::vector<std::string> arguments;      // of the trainer besides those of every job
  std::vector<std::string> odd_arguments;  // of the last rank alone
  std::vector<std::string> agent;          // words before the command: what runs it elsewhere
  std::vector<std::string> before;         // words before mpirun, or before the trainer alone
  std::vector<std::string> mpirun;         // its options besides those of every job
  std::string hosts;                       // as of --host; empty: this one
  std::map<std::string, std::string> environment;
  Strike strike;
  std::function<void(int code)> restore;  // after the job, which ended with the exit code

  std::string what;     // told: "SIGKILL to rank 2"
  bool strikes = true;  // false: there was nothing to disturb
  // Exit codes that are all right besides 0, if the fault struck: of those that strike a supervisor
  // too, or whatever it starts; and of those that strike ranks once, which a supervisor must
  // survive, unless it gives up for a fault of the first kind.
  std::set<int> codes;
  std::set<int> codes_once;
  // With code 2 or 3 a line of the trainer's must hold one of these texts; none: any line will do.
  std::vector<std::string> names;
};

using Random = std::mt19937_64;

// What a fault can need; bits.
enum Needs : unsigned {
  kNothing = 0,
  kBegunRun = 1,      // a run that has a checkpoint
  kRanks = 2,         // a job of several ranks
  kHosts = 4,         // two hosts, network namespaces (virtual_hosts.sh)
  kSmallDisk = 8,     // the run's folder on a disk of its own, of kSmallDiskBytes
  kDelays = 16,       // a cable that delays (delayed_cable.cc)
  kMemoryGroup = 32,  // a control group of memory (memory_group.h)
};

// A kind of fault: a line of the table in faults.cc.
struct Fault {
  const char* name;
  const char* what;
  unsigned needs;
  void (*plan)(Random& random, DisturbedJob* attempt);
};
std::span<const Fault> Faults();
const Fault& FaultNamed(const std::string& name);

// Two faults that can strike the same job, each at its own moment.
struct FaultPair {
  const char* first;
  const char* second;
};
std::span<const FaultPair> FaultPairs();
// Makes one job of two plans for it, which began alike. What strikes, what is allowed and what is
// to be done afterwards stays with each.
void Join(const DisturbedJob& other, DisturbedJob* attempt);

// The small disk is a tmpfs.
inline constexpr int64_t kSmallDiskBytes = 64 << 20;

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_FAULTS_H_
