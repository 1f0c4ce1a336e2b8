#include "tests/faults/faults.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "glog/logging.h"
#include "tests/faults/byte_damage.h"
#include "tests/faults/memory_group.h"

namespace elastor {
namespace {

namespace fs = std::filesystem;

size_t Below(Random& random, size_t n) { return random() % n; }
double Share(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

void Write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// ---- When, and to whom.

// Half of the moments by time, so that starts and ends have their share; half by progress.
void AtSomeMoment(Random& random, Attempt* attempt) {
  if (Below(random, 2) == 0) {
    attempt->strike.after_seconds = Share(random) * attempt->undisturbed.seconds;
  } else {
    attempt->strike.after_records =
        1 + static_cast<int>(Below(random, attempt->undisturbed.records));
  }
}

// Calls act(process) once the rank runs the trainer.
template <typename Act>
void OnRank(int rank, Attempt* attempt, Act act) {
  attempt->strike.act = [rank, act](const Processes& processes,
                                    bool* struck) mutable -> std::optional<double> {
    const auto found = processes.ranks.find(rank);
    if (found == processes.ranks.end()) return 0.01;
    *struck = true;
    return act(found->second);
  };
}

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

void SendSignal(int signal, int rank, Attempt* attempt) {
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
    if (victims.empty() || (rank == kAll && static_cast<int>(victims.size()) < ranks)) return 0.01;
    *struck = true;
    Signal(victims, signal);
    return std::nullopt;
  };
}

void SetDeadlines(int seconds, int start_seconds, Attempt* attempt) {
  for (const std::string& setting : {"deadline_seconds=" + std::to_string(seconds),
                                     "start_seconds=" + std::to_string(start_seconds)}) {
    attempt->arguments.push_back("--set=parallel." + setting);
  }
}

int SomeRank(Random& random, const Attempt& attempt) {
  return static_cast<int>(Below(random, attempt.ranks));
}

// The exit codes of a job whose ranks are struck once: a supervisor must start them again.
void AllowEnds(const std::set<int>& codes, Attempt* attempt) {
  if (!attempt->supervised) attempt->codes = codes;
}

// ---- Processes.

void KillRank(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  SendSignal(SIGKILL, SomeRank(random, *attempt), attempt);
  AllowEnds({137}, attempt);
}

void KillAll(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  SendSignal(SIGKILL, kAll, attempt);
  AllowEnds({137}, attempt);
}

void KillLauncher(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  const bool below = attempt->supervised && Below(random, 2) == 0;
  SendSignal(SIGKILL, below ? kMpirun : kLauncher, attempt);
  if (!below) attempt->codes = {137};
}

void Pause(Random& random, Attempt* attempt) {
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

void Stop(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  SendSignal(SIGSTOP, SomeRank(random, *attempt), attempt);
  SetDeadlines(3, 6, attempt);
  AllowEnds({3}, attempt);
  attempt->names = {"did not complete within"};
}

void StopSignal(Random& random, Attempt* attempt) {
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};
  AtSomeMoment(random, attempt);
  const int signal = kSignals[Below(random, 3)];
  const size_t target = Below(random, 3);
  SendSignal(signal,
             target == 0   ? kAll
             : target == 1 ? kLauncher
                           : SomeRank(random, *attempt),
             attempt);
  if (target != 1) return AllowEnds({75, 128 + signal}, attempt);
  attempt->codes = {75, 128 + signal};
  // mpirun's own end.
  if (signal != SIGUSR1) attempt->codes.insert(1);
}

void OtherFlags(Random& random, Attempt* attempt) {
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
  attempt->strike.act = [](const Processes&, bool* struck) -> std::optional<double> {
    *struck = true;
    return std::nullopt;
  };
  attempt->codes = {2};
  attempt->names = {"rank " + std::to_string(attempt->ranks - 1) + ": "};
}

// ---- Files that are damaged before the job begins.

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Returns what was done; "" when nothing was.
std::string DamageFile(Random& random, const fs::path& file, const fs::path& other) {
  if (Below(random, 6) == 0) {
    fs::remove(file);
    return "remove " + file.string();
  }
  std::string bytes = Contents(file);
  std::string what;
  if (Below(random, 6) == 0 && fs::exists(other) && Contents(other) != bytes) {
    bytes = Contents(other);
    what = other.string() + " in the place of ";
  } else {
    what = DamageBytes(random, &bytes);
  }
  if (what.empty()) return "";
  Write(file, bytes);
  return what + file.string();
}

void StrikeAtOnce(Attempt* attempt) {
  attempt->strike.act = [](const Processes&, bool* struck) -> std::optional<double> {
    *struck = true;
    return std::nullopt;
  };
  attempt->codes = {2, 3};
}

void DamageCheckpoint(Random& random, Attempt* attempt) {
  const fs::path folder = fs::path(attempt->run) / "checkpoints";
  const std::vector<fs::path> files = FilesIn(folder);
  // The last training state, or the weights of the best evaluation: other states are not read.
  std::string last;
  for (const fs::path& file : files) {
    const std::string name = file.parent_path().filename();
    if (name.starts_with("step-") && name.size() == 15) last = std::max(last, name);
  }
  std::vector<fs::path> read;
  for (const fs::path& file : files) {
    const std::string name = file.parent_path().filename();
    if (name == last || name.starts_with("best-")) read.push_back(file);
  }
  attempt->strikes = !read.empty();
  if (read.empty()) return;
  const fs::path file = read[Below(random, read.size())];
  const fs::path other = files[Below(random, files.size())].parent_path() / file.filename();
  const std::string whole = Contents(file);
  attempt->what = DamageFile(random, file, other);
  attempt->strikes = !attempt->what.empty();
  attempt->names = {file.parent_path().filename()};
  attempt->restore = [=](int code) {
    if (code != 0) Write(file, whole);
  };
  StrikeAtOnce(attempt);
}

// The record of a run has no hash: what shows is a line that is none, and lines that are missing.
void DamageMetrics(Random& random, Attempt* attempt) {
  const fs::path file = fs::path(attempt->run) / "metrics.jsonl";
  const std::string whole = Contents(file);
  attempt->strikes = !whole.empty();
  if (whole.empty()) return;
  std::string bytes = whole;
  const size_t at = Below(random, bytes.size());
  switch (Below(random, 3)) {
    case 0:
      attempt->what = "remove ";
      fs::remove(file);
      break;
    case 1:
      attempt->what = "cut at byte " + std::to_string(at) + " of ";
      Write(file, bytes.substr(0, at));
      break;
    default:
      attempt->what = "zeros into byte " + std::to_string(at) + " of ";
      bytes.replace(at, 16, std::string(std::min<size_t>(16, bytes.size() - at), '\0'));
      Write(file, bytes);
  }
  attempt->what += file.string();
  attempt->names = {file};
  attempt->restore = [=](int code) {
    if (code != 0) Write(file, whole);
  };
  StrikeAtOnce(attempt);
}

// A copy of the data set, for the job alone.
fs::path CopyData(Attempt* attempt) {
  const fs::path copy = fs::path(attempt->work) / "data";
  fs::remove_all(copy);
  fs::copy(attempt->data, copy, fs::copy_options::recursive);
  attempt->arguments.push_back("--set=data.path=" + copy.string());
  attempt->names = {copy};
  attempt->codes = {2, 3};
  return copy;
}

void DamageData(Random& random, Attempt* attempt) {
  const std::vector<fs::path> files = FilesIn(CopyData(attempt));
  const fs::path file = files[Below(random, files.size())];
  attempt->what = DamageFile(random, file, files[Below(random, files.size())]);
  attempt->strikes = !attempt->what.empty();
  StrikeAtOnce(attempt);
}

// ---- Files that change while the job runs.

void ChangeData(Random& random, Attempt* attempt) {
  const std::vector<fs::path> files = FilesIn(CopyData(attempt));
  const fs::path file = files[Below(random, files.size())];
  AtSomeMoment(random, attempt);
  const uint64_t seed = random();
  attempt->what = "change " + file.string() + " in mid-run";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    Random own(seed);
    std::string bytes = Contents(file);
    if (DamageBytes(own, &bytes).empty()) return std::nullopt;
    *struck = true;
    // In place, as cp does.
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream << bytes;
    stream.close();
    if (bytes.size() < fs::file_size(file)) fs::resize_file(file, bytes.size());
    return std::nullopt;
  };
}

void MoveFolder(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  const std::string run = attempt->run;
  attempt->what = "move " + run + " in mid-run";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    if (!fs::exists(run)) return 0.01;
    std::error_code is_mount;
    fs::rename(run, run + ".moved", is_mount);
    *struck = !is_mount;
    return std::nullopt;
  };
  attempt->restore = [=](int) {
    if (!fs::exists(run + ".moved")) return;
    // A job that had not opened it yet has begun a new one, which is as good.
    const bool anew = fs::exists(run + "/metrics.jsonl");
    fs::remove_all(anew ? run + ".moved" : run);
    if (!anew) fs::rename(run + ".moved", run);
  };
  attempt->codes = {2, 3};
  attempt->names = {run};
}

// ---- Disks.

void FillDisk(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  const std::string run = attempt->run;
  const fs::path filler = run + "/filler";
  const auto room = static_cast<int64_t>(Share(random) * Share(random) * 512 * 1024);
  attempt->what = "leave " + std::to_string(room) + " bytes of " + run + "'s disk";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    // The run refuses a folder that holds something else than a run.
    if (!fs::exists(run + "/metrics.jsonl")) return 0.01;
    struct statvfs disk;
    CHECK_EQ(statvfs(run.c_str(), &disk), 0);
    const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_bsize);
    *struck = true;
    Write(filler, std::string(std::max<int64_t>(0, free - room), 'x'));
    return std::nullopt;
  };
  attempt->restore = [=](int) { fs::remove(filler); };
  attempt->codes = {3};
  attempt->names = {run};
}

void FailDisk(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  const std::string run = attempt->run;
  attempt->what = run + "'s disk read-only";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    if (!fs::exists(run + "/metrics.jsonl")) return 0.01;
    // The whole file system cannot be while one of its files is open for writing. So this file
    // stays as it is; all that is opened, made, renamed or removed from now on meets EROFS.
    CHECK_EQ(mount(run.c_str(), run.c_str(), nullptr, MS_BIND, nullptr), 0);
    CHECK_EQ(mount(nullptr, run.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
    *struck = true;
    return std::nullopt;
  };
  // The tmpfs itself stays.
  attempt->restore = [=](int) {
    struct statvfs disk;
    CHECK_EQ(statvfs(run.c_str(), &disk), 0);
    if ((disk.f_flag & ST_RDONLY) != 0) CHECK_EQ(umount2(run.c_str(), MNT_DETACH), 0);
  };
  attempt->codes = {2, 3};
  attempt->names = {run};
}

// A fault of faulty_system.cc at the boundary that is the run's by its index: so that runs one
// after the other have boundaries one after the other.
void AtBoundary(const char* fault, Attempt* attempt) {
  int64_t all = 0;
  for (const int64_t boundaries : attempt->undisturbed.boundaries) all += boundaries;
  int64_t boundary = static_cast<int64_t>(attempt->index) % all;
  int rank = 0;
  while (boundary >= attempt->undisturbed.boundaries[rank]) {
    boundary -= attempt->undisturbed.boundaries[rank++];
  }
  attempt->what = std::string(fault) + " at boundary " + std::to_string(boundary + 1) +
                  " of rank " + std::to_string(rank);
  attempt->environment["ELASTOR_FAULT"] = fault;
  attempt->environment["ELASTOR_FAULT_RANK"] = std::to_string(rank);
  attempt->environment["ELASTOR_FAULT_BOUNDARY"] = std::to_string(boundary + 1);
  attempt->strike.mark = attempt->work + "/mark." + fault;
  attempt->environment["ELASTOR_FAULT_MARK"] = attempt->strike.mark;
  attempt->names = {attempt->run, attempt->data};
}

void NoSpace(Random&, Attempt* attempt) {
  AtBoundary("no_space", attempt);
  AllowEnds({3}, attempt);
}
void IoError(Random&, Attempt* attempt) {
  AtBoundary("io_error", attempt);
  AllowEnds({3}, attempt);
}
void ShortCalls(Random&, Attempt* attempt) { AtBoundary("short", attempt); }
void SlowDisk(Random&, Attempt* attempt) { AtBoundary("slow", attempt); }
void TornWrite(Random&, Attempt* attempt) {
  AtBoundary("torn", attempt);
  AllowEnds({137}, attempt);
}
void Clocks(Random&, Attempt* attempt) { AtBoundary("clock", attempt); }

// ---- Limits of the system.

// The rank's size in memory's addresses, in bytes.
int64_t AddressBytes(pid_t process) {
  return std::atoll(Contents("/proc/" + std::to_string(process) + "/statm").c_str()) *
         sysconf(_SC_PAGESIZE);
}

void LimitMemory(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  const int rank = SomeRank(random, *attempt);
  const auto room = static_cast<rlim_t>(Share(random) * Share(random) * (16 << 20));
  attempt->what =
      "rank " + std::to_string(rank) + " gets " + std::to_string(room) + " bytes more memory";
  OnRank(rank, attempt, [room](pid_t process) -> std::optional<double> {
    const rlim_t limit = AddressBytes(process) + room;
    const rlimit bounds = {.rlim_cur = limit, .rlim_max = limit};
    prlimit(process, RLIMIT_AS, &bounds, nullptr);
    return std::nullopt;
  });
  AllowEnds({1, 3}, attempt);  // 1: Open MPI's own end, in MPI_Init
}

void LimitFiles(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  const int rank = SomeRank(random, *attempt);
  const size_t room = Below(random, 4);
  attempt->what =
      "rank " + std::to_string(rank) + " may open " + std::to_string(room) + " files more";
  OnRank(rank, attempt, [room](pid_t process) -> std::optional<double> {
    rlim_t limit = room;
    std::error_code ignored;
    for (const auto& entry :
         fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored)) {
      limit = std::max<rlim_t>(limit, room + 1 + std::atoi(entry.path().filename().c_str()));
    }
    const rlimit bounds = {.rlim_cur = limit, .rlim_max = limit};
    prlimit(process, RLIMIT_NOFILE, &bounds, nullptr);
    return std::nullopt;
  });
  AllowEnds({1, 3}, attempt);  // 1: as above
}

// The ranks and mpirun, but not their supervisor, are in a control group, whose memory another
// process in it takes, until the kernel has killed one of them; then they get it back.
void EndMemory(Random& random, Attempt* attempt) {
  constexpr int64_t kTaken = 128 << 20;
  AtSomeMoment(random, attempt);
  const auto group = std::make_shared<const MemoryGroup>();
  CHECK(!group->path().empty()) << "no control groups of memory";
  const auto room = static_cast<int64_t>(Share(random) * (4 << 20));
  const std::string enter = attempt->work + "/in_group";
  const std::string taken = "/dev/shm/elastor_faults.taken." + std::to_string(getpid());
  Write(enter, "#!/bin/sh\necho $$ >" + group->processes() + " && exec \"$@\"\n");
  fs::permissions(enter, fs::perms::owner_all);
  attempt->before = {enter};
  attempt->what = "a control group with " + std::to_string(room) + " bytes more memory";
  attempt->strike.act = [=, limited = false](const Processes&,
                                             bool* struck) mutable -> std::optional<double> {
    if (group->Kills() > 0) {
      group->Limit(-1);
      return std::nullopt;
    }
    if (limited) return 0.01;
    limited = *struck = group->Limit(group->Used() + room);
    if (!limited) return 0.01;
    const std::string take = enter + " dd if=/dev/zero of=" + taken +
                             " bs=64K count=" + std::to_string(kTaken >> 16) + " 2>/dev/null &";
    CHECK_EQ(std::system(take.c_str()), 0);
    return 0.01;
  };
  attempt->restore = [=](int) {
    fs::remove(taken);
    group->Remove();
  };
  AllowEnds({137, 1, 3}, attempt);  // 1: as above
}

// ---- Links: half of the ranks are on a second host, a network namespace (virtual_hosts.sh).

bool Hosts(const Attempt& attempt, const std::string& command) {
  return std::system(("tests/faults/virtual_hosts.sh " + attempt.work + " " + command).c_str()) ==
         0;
}

// up: how they are made.
void OnTwoHosts(Attempt* attempt, const std::string& up = "up") {
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

void CutLink(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  OnTwoHosts(attempt);
  attempt->what = "cut the link between two hosts";
  // A deadline below the keepalive's 5 s can leave mpirun for a quarter of an hour, which a
  // supervisor ends (docs/operations.md, "Deadlines and failures").
  SetDeadlines(attempt->supervised ? 4 : 9, 10, attempt);
  OnRank(0, attempt, [attempt = *attempt](pid_t) -> std::optional<double> {
    Hosts(attempt, "cut");
    return std::nullopt;
  });
  // mpirun's own, when it notices first.
  AllowEnds({3, 205, 1}, attempt);
}

void BreakLink(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  OnTwoHosts(attempt);
  const double seconds = 0.2 + 2 * Share(random);
  attempt->what = "cut the link for " + std::to_string(seconds) + " s";
  OnRank(0, attempt, [=, attempt = *attempt, cut = false](pid_t) mutable -> std::optional<double> {
    Hosts(attempt, cut ? "heal" : "cut");
    return std::exchange(cut, true) ? std::nullopt : std::optional(seconds);
  });
}

void SlowLink(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  OnTwoHosts(attempt);
  const std::string megabits = std::to_string(5 + Below(random, 50));
  const double seconds = 1 + 9 * Share(random);
  attempt->what = "a link of " + megabits + " Mbit/s for " + std::to_string(seconds) + " s";
  OnRank(0, attempt, [=, attempt = *attempt, slow = false](pid_t) mutable -> std::optional<double> {
    Hosts(attempt, slow ? "free" : "throttle " + megabits);
    return std::exchange(slow, true) ? std::nullopt : std::optional(seconds);
  });
}

void DelayedLink(Random& random, Attempt* attempt) {
  AtSomeMoment(random, attempt);
  const size_t least = 1 + Below(random, 50);
  const std::string delays =
      std::to_string(least) + " " + std::to_string(least + Below(random, 51 - least));
  OnTwoHosts(attempt, "up " + delays);
  const double seconds = 1 + 9 * Share(random);
  attempt->what =
      "a link that delays by " + delays + " ms for " + std::to_string(seconds) + " s";
  OnRank(0, attempt, [=, attempt = *attempt, late = false](pid_t) mutable -> std::optional<double> {
    Hosts(attempt, late ? "prompt" : "delay");
    return std::exchange(late, true) ? std::nullopt : std::optional(seconds);
  });
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
    {"delayed_link", "the same with delays of 1 to 50 ms for 1 to 10 s", kRanks | kHosts | kDelays, DelayedLink},
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

void Join(const Attempt& other, Attempt* attempt) {
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
