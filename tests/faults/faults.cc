#include "tests/faults/faults.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/log.h"
#include "tests/faults/file_faults.h"
#include "tests/faults/limit_faults.h"
#include "tests/faults/link_faults.h"
#include "tests/faults/moments.h"

namespace elastor {
namespace {

void Signal(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t process : processes) kill(process, signal);
}

// rank: one of them, or all, or what was started, or the mpirun of a supervised job.
constexpr int kAll = -1;
constexpr int kLauncher = -2;
constexpr int kMpirun = -3;

std::string NameOf(int rank, bool supervised) {
  return rank == kAll                      ? "all ranks"
         : rank == kLauncher && supervised ? "the supervisor"
         : rank < 0                        ? "mpirun"
                                           : "rank " + std::to_string(rank);
}

void SendSignal(int signal, int rank, DisturbedJob* attempt) {
  attempt->what =
      std::string("SIG") + sigabbrev_np(signal) + " to " + NameOf(rank, attempt->supervised);
  attempt->strike.act = [=, ranks = attempt->ranks](const Processes& processes,
                                                    bool* struck) -> std::optional<double> {
    std::vector<pid_t> victims;
    for (const auto& [number, process] : processes.ranks) {
      if (rank == kAll || rank == number) victims.push_back(process);
    }
    if (rank == kLauncher) victims = {processes.launcher};
    if (rank == kMpirun && processes.mpirun > 0) victims = {processes.mpirun};
    if (victims.empty() || (rank == kAll && static_cast<int>(victims.size()) < ranks))
      return kAgainSeconds;
    *struck = true;
    Signal(victims, signal);
    return std::nullopt;
  };
}

void KillRank(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  SendSignal(SIGKILL, SomeRank(random, *attempt), attempt);
  attempt->codes_once = {137};
}

void KillAll(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  SendSignal(SIGKILL, kAll, attempt);
  attempt->codes_once = {137};
}

void KillLauncher(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const bool below = attempt->supervised && Below(random, 2) == 0;
  SendSignal(SIGKILL, below ? kMpirun : kLauncher, attempt);
  if (!below) attempt->codes = {137};
}

void Pause(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const int rank = SomeRank(random, *attempt);
  const double seconds = 0.1 + 2 * Share(random);
  attempt->what =
      "rank " + std::to_string(rank) + " stands still for " + std::to_string(seconds) + " s";
  OnRank(rank, attempt, [seconds, stopped = false](pid_t process) mutable -> std::optional<double> {
    kill(process, stopped ? SIGCONT : SIGSTOP);
    return std::exchange(stopped, true) ? std::nullopt : std::optional(seconds);
  });
}

void Stop(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  SendSignal(SIGSTOP, SomeRank(random, *attempt), attempt);
  SetDeadlines(3, 6, attempt);
  attempt->codes_once = {3};
  attempt->names = {"did not complete within"};
}

void StopSignal(Random& random, DisturbedJob* attempt) {
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};
  AtSomeMoment(random, attempt);
  const int signal = kSignals[Below(random, 3)];
  const size_t target = Below(random, 3);
  SendSignal(signal,
             target == 0   ? kAll
             : target == 1 ? kLauncher
                           : SomeRank(random, *attempt),
             attempt);
  std::set<int>& codes = target == 1 ? attempt->codes : attempt->codes_once;
  codes = {75, 128 + signal};
  if (target == 1 && signal != SIGUSR1) codes.insert(1);  // mpirun's own end
}

void OtherFlags(Random& random, DisturbedJob* attempt) {
  constexpr const char* kFlags[] = {"--set=training.max_steps=3",
                                    "--set=training.seed=77",
                                    "--set=parallel.plan=REPLICATED",
                                    "--set=checkpoint.every_steps=3",
                                    "--set=evaluation.at_start=true",
                                    "--split=test",
                                    "--predictions",
                                    "--set=optimizer.learning_rate=0.5"};
  attempt->odd_arguments = {kFlags[Below(random, std::size(kFlags))]};
  attempt->what = "one rank with " + attempt->odd_arguments[0];
  AtOnce(attempt);
  attempt->codes = {2};
  attempt->names = {"rank " + std::to_string(attempt->ranks - 1) + ": "};
}

// To add one: a line here, and a function that plans it.
constexpr Fault kFaults[] = {
    {"kill_rank", "SIGKILL to one rank", kNothing, KillRank},
    {"kill_all", "SIGKILL to all ranks", kNothing, KillAll},
    {"kill_mpirun", "SIGKILL to mpirun, or to its supervisor", kRanks, KillLauncher},
    {"pause", "a rank stands still for 0.1 to 2 s", kRanks, Pause},
    {"stop", "a rank stands still for ever", kRanks, Stop},
    {"signal", "SIGINT, SIGTERM or SIGUSR1 to a rank, all, mpirun", kNothing, StopSignal},
    {"other_flags", "a rank is started with another flag", kRanks, OtherFlags},
    {"damage_checkpoint", "a file of the checkpoint damaged, exchanged, removed", kBegunRun,
     DamageCheckpoint},
    {"damage_metrics", "metrics.jsonl removed, cut, overwritten", kBegunRun, DamageMetrics},
    {"damage_data", "a file of the data set damaged, exchanged, removed", kNothing, DamageData},
    {"change_data", "a file of the data set damaged in mid-run", kNothing, ChangeData},
    {"move_folder", "the run's folder moved away in mid-run", kNothing, MoveFolder},
    {"full_disk", "the disk full (a tmpfs)", kSmallDisk, FillDisk},
    {"failing_disk", "the disk read-only (a tmpfs)", kSmallDisk, FailDisk},
    {"no_space", "ENOSPC from some call on", kNothing, NoSpace},
    {"io_error", "EIO of one call, SIGBUS of a mapping", kNothing, IoError},
    {"short", "short reads and writes from some call on", kNothing, ShortCalls},
    {"slow_disk", "20 ms a call from some call on", kNothing, SlowDisk},
    {"torn_write", "death in the middle of a write, around another call", kNothing, TornWrite},
    {"clock", "the clock of the day jumps to and fro", kNothing, Clocks},
    {"memory", "a rank gets no more memory (RLIMIT_AS)", kNothing, LimitMemory},
    {"descriptors", "a rank gets no more descriptors", kNothing, LimitFiles},
    {"memory_cgroup", "the job gets no more memory (a control group)", kMemoryGroup, EndMemory},
    {"cut_link", "the link between two hosts cut for ever", kRanks | kHosts, CutLink},
    {"broken_link", "the same for 0.2 to 2.2 s", kRanks | kHosts, BreakLink},
    {"slow_link", "the same with 5 to 54 Mbit/s for 1 to 10 s", kRanks | kHosts, SlowLink},
    {"delayed_link", "the same with delays of 1 to 50 ms for 1 to 10 s", kRanks | kHosts | kDelays,
     DelayedLink},
};

// Of two that use the same thing (a disk, the links, the data set's copy) there is none.
constexpr FaultPair kFaultPairs[] = {
    {"pause", "kill_rank"},
    {"pause", "signal"},
    {"slow_disk", "signal"},
    {"slow_disk", "kill_mpirun"},
    {"slow_disk", "torn_write"},
    {"clock", "kill_all"},
    {"clock", "pause"},
    {"short", "torn_write"},
    {"short", "kill_rank"},
    {"no_space", "signal"},
    {"io_error", "pause"},
    {"full_disk", "kill_rank"},
    {"failing_disk", "kill_rank"},
    {"memory", "signal"},
    {"memory_cgroup", "slow_disk"},
    {"slow_link", "kill_rank"},
    {"delayed_link", "signal"},
    {"delayed_link", "torn_write"},
};

}  // namespace

std::span<const Fault> Faults() { return kFaults; }

const Fault& FaultNamed(const std::string& name) {
  const Fault* const found = std::find_if(std::begin(kFaults), std::end(kFaults),
                                          [&](const Fault& fault) { return fault.name == name; });
  CHECK(found != std::end(kFaults)) << "there is no " << name;
  return *found;
}

std::span<const FaultPair> FaultPairs() { return kFaultPairs; }

void Join(const DisturbedJob& other, DisturbedJob* attempt) {
  const auto append = [](const auto& more, auto* all) {
    all->insert(all->end(), more.begin(), more.end());
  };
  append(other.arguments, &attempt->arguments);
  append(other.odd_arguments, &attempt->odd_arguments);
  append(other.agent, &attempt->agent);
  append(other.before, &attempt->before);
  append(other.mpirun, &attempt->mpirun);
  attempt->hosts += other.hosts;
  // Of faulty_system.cc, which takes lists.
  for (const auto& [name, value] : other.environment) {
    std::string& all = attempt->environment[name];
    all += (all.empty() ? "" : ",") + value;
  }
}

}  // namespace elastor
