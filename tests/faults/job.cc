#include "tests/faults/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "core/base/log.h"

namespace elastor {
namespace {

constexpr std::chrono::milliseconds kPoll(10);
// After the last rank's end mpirun needs a second or three.
constexpr double kLauncherSeconds = 20;
constexpr double kLookSeconds = 0.5;  // between two looks at all processes

[[noreturn]] void Become(const JobPlan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  signal(SIGINT, SIG_DFL);  // ignored below a shell's background
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  const int log = open(plan.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const int nothing = open("/dev/null", O_RDONLY);
  if (dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) _exit(126);
  std::vector<char*> words;
  for (const std::string& word : plan.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

struct ProcessState {
  char state = 'Z';
  int parent = 0;
};
// A process that is gone is over.
ProcessState StateOf(pid_t process) {
  ProcessState found;
  const std::string stat = Contents("/proc/" + std::to_string(process) + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end != stat.npos) {
    std::sscanf(&stat[name_end + 1], " %c %d", &found.state, &found.parent);
  }
  return found;
}
bool IsStopped(pid_t process) { return StateOf(process).state == 'T'; }

// All processes below this one that are not over, by their parents.
std::vector<pid_t> Descendants() {
  std::map<pid_t, std::vector<pid_t>> children;
  DIR* const all = opendir("/proc");
  CHECK(all != nullptr);
  while (const dirent* entry = readdir(all)) {
    const pid_t process = std::atoi(entry->d_name);
    if (process <= 0) continue;
    const ProcessState found = StateOf(process);
    if (found.state != 'Z') children[found.parent].push_back(process);
  }
  closedir(all);
  std::vector<pid_t> found = children[getpid()];
  for (size_t i = 0; i < found.size(); ++i) {
    const std::vector<pid_t> below = children[found[i]];
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

class Job {
 public:
  explicit Job(const JobPlan& plan)
      : plan_(plan),
        metrics_(plan.output_dir + "/metrics.jsonl"),
        old_inode_(Inode()),
        strikes_(plan.strikes.size()) {
    unlink(plan.log.c_str());  // of the job before, which is read until this one writes its own
    launcher_ = fork();
    CHECK_GE(launcher_, 0);
    if (launcher_ == 0) Become(plan);
  }

  ObservedEnd Run() {
    while (Reap()) {
      const double now = SecondsSince(start_);
      WatchFirstStep(now);
      if (plan_.supervised) WatchRestart();
      for (size_t s = 0; s < strikes_.size(); ++s) Disturb(now, plan_.strikes[s], &strikes_[s]);
      if (now > next_look_) Look(now);
      std::this_thread::sleep_for(kPoll);
    }
    end_.seconds = SecondsSince(start_);
    for (size_t s = 0; s < strikes_.size(); ++s) {
      const auto struck = StruckAt(s);
      end_.notice_seconds.push_back(struck ? std::optional(SecondsSince(*struck)) : std::nullopt);
    }
    end_.lines = LinesBesideProgress(Contents(plan_.log));
    return end_;
  }

 private:
  ino_t Inode() const {
    struct stat info;
    return stat(metrics_.c_str(), &info) == 0 ? info.st_ino : 0;
  }

  // Whether a process is left.
  bool Reap() {
    int status = 0;
    pid_t child = 0;
    while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
      if (child != launcher_) continue;
      end_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      launcher_ended_ = true;
    }
    return child == 0;
  }

  // Whether there is a record of a later step than the one that the log's last line with these
  // words ends with.
  bool HasGoneOn(std::string_view words) const {
    const std::string log = Contents(plan_.log);
    const size_t told = log.rfind(words);
    const int64_t from = told == log.npos ? 0 : std::atoll(&log[told + words.size()]);
    const std::string metrics = Contents(metrics_);
    const size_t last = metrics.rfind("\"step\":");
    return last != metrics.npos && std::atoll(&metrics[last + 7]) > from;
  }

  void WatchFirstStep(double now) {
    if (end_.first_step_seconds || Inode() == old_inode_) return;
    if (HasGoneOn("continuing at step ")) end_.first_step_seconds = now;
  }

  // The ranks of the next attempt begin another metrics.jsonl.
  void WatchRestart() {
    if (end_.restart_seconds) return;
    if (!end_.restarted) {
      end_.restarted = Contents(plan_.log).find("; again on ") != std::string::npos;
      if (end_.restarted) ended_inode_ = Inode();
      return;
    }
    if (Inode() == ended_inode_ || !HasGoneOn(" from step ")) return;
    std::optional<Clock::time_point> last;
    for (size_t s = 0; s < strikes_.size(); ++s) last = std::max(last, StruckAt(s));
    if (last) end_.restart_seconds = SecondsSince(*last);
  }

  // How far a strike has come.
  struct Progress {
    bool over = false;
    double next_act = 0;
    std::optional<Clock::time_point> struck;
  };

  void Disturb(double now, const Strike& strike, Progress* progress) {
    if (!strike.act || progress->over || launcher_ended_ || now < progress->next_act) return;
    if (now < strike.after_seconds) return;
    if (strike.after_records > 0) {
      const std::string metrics = Contents(metrics_);
      if (std::count(metrics.begin(), metrics.end(), '\n') < strike.after_records) return;
    }
    bool struck = false;
    const std::optional<double> again = strike.act(Find(), &struck);
    if (struck && !progress->struck) progress->struck = Clock::now();
    progress->over = !again;
    if (again) progress->next_act = SecondsSince(start_) + *again;
  }

  Processes Find() const {
    Processes found = {.launcher = launcher_, .ranks = {}};
    for (const pid_t process : Descendants()) {
      const std::string folder = "/proc/" + std::to_string(process);
      if (plan_.supervised && Contents(folder + "/comm") == "mpirun\n") found.mpirun = process;
      if (Contents(folder + "/cmdline").c_str() != plan_.trainer) continue;
      const std::string environment = '\0' + Contents(folder + "/environ");
      constexpr std::string_view kRank("\0OMPI_COMM_WORLD_RANK=", 22);
      const size_t at = environment.find(kRank);
      if (plan_.supervised && at == environment.npos) continue;
      found.ranks[at == environment.npos ? 0 : std::atoi(&environment[at + kRank.size()])] =
          process;
    }
    return found;
  }

  // Ends a job that hangs.
  void Look(double now) {
    next_look_ = now + kLookSeconds;
    // Or its daemon on a host that is cut off, which outlives a supervisor. A rank that is stopped
    // in its last moment, when the others have left, is missed by mpirun alone, and not by that.
    const bool of_mpirun = plan_.supervised ? launcher_ended_ : plan_.command[0] != plan_.trainer;
    const std::map<int, pid_t> ranks = Find().ranks;
    const bool alone = of_mpirun && std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) {
                         return IsStopped(rank.second);
                       });
    if (!alone) last_in_company_ = now;
    if (now <= plan_.hang_seconds && now - last_in_company_ <= kLauncherSeconds) return;
    if (!end_.hung && !end_.launcher_hung) {
      end_.launcher_hung = alone;
      end_.hung = !alone;
      for (const auto& [rank, process] : ranks) TraceStack(rank, process);
    }
    for (const pid_t process : Descendants()) kill(process, SIGKILL);
  }

  void TraceStack(int rank, pid_t process) const {
    const std::string command = "gdb -p " + std::to_string(process) +
                                " -batch -ex 'thread apply all backtrace' >" + plan_.log + ".rank" +
                                std::to_string(rank) + ".stack 2>&1 </dev/null";
    if (std::system(command.c_str()) != 0)
      LOG(WARNING) << "no stack of rank " << rank << ": no gdb";
  }

  std::optional<Clock::time_point> StruckAt(size_t strike) const {
    const std::string& path = plan_.strikes[strike].mark;
    if (path.empty()) return strikes_[strike].struck;
    const std::string mark = Contents(path);
    if (mark.empty()) return std::nullopt;
    return Clock::time_point(std::chrono::nanoseconds(std::atoll(mark.c_str())));
  }

  const JobPlan& plan_;
  const std::string metrics_;
  const ino_t old_inode_;
  ino_t ended_inode_ = 0;  // of the first attempt of a supervised job
  const Clock::time_point start_ = Clock::now();
  pid_t launcher_ = -1;
  bool launcher_ended_ = false;
  std::vector<Progress> strikes_;
  double next_look_ = 0;
  double last_in_company_ = 0;
  ObservedEnd end_;
};

}  // namespace

std::string Contents(const std::string& path) {
  std::ostringstream contents;
  contents << std::ifstream(path, std::ios::binary).rdbuf();
  return contents.str();
}

void AdoptOrphans() { CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }

ObservedEnd RunJob(const JobPlan& plan) { return Job(plan).Run(); }

std::string LinesBesideProgress(const std::string& log) {
  std::istringstream lines(log);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const bool progress = line.empty() || line.starts_with("step ") || line.starts_with("run: ") ||
                          line.starts_with("data: ") || line.starts_with("plan: ") ||
                          line.starts_with("continuing ") || line.starts_with("[warn] Epoll") ||
                          (line.starts_with("[") && line.find("] Read -1") != line.npos);
    if (!progress) kept += line + "\n";
  }
  return kept;
}

}  // namespace elastor
