// The launcher's command line: a sweep in, its runs' folders and a table out (docs/operations.md).
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"
#include "gflags/gflags.h"
#include "glog/logging.h"
#include "launcher/local_scheduler.h"
#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"
#include "launcher/sweep_file.h"
#include "launcher/sweep_status.h"
#include "launcher/time_estimate.h"
#include "trainer/run/command_line.h"
#include "trainer/run/standard_streams.h"

DEFINE_string(sweep, "", "what to run: a text file of configs/proto/sweep.proto");
DEFINE_string(set, "",
              "base.path.to.field=value, a field of the base experiment, "
              "axis.path.to.field=value,value, other values of an axis, or resources.ranks=N or "
              "resources.threads=N; may be repeated");
DEFINE_string(output_dir, "", "where the sweep is written: a new directory, or this sweep's own");
DEFINE_bool(dry_run, false, "print every run with its size and command, and start none");
DEFINE_bool(calibrate, false,
            "before all else, time short runs of a few sizes, for the times that --dry_run and the "
            "launcher's lines estimate; done once in an --output_dir");
DEFINE_bool(status, false, "print how far the sweep in --output_dir is; needs no --sweep");
DEFINE_bool(retry_failed, false, "try failed runs again, also those that would not be");
DEFINE_string(trainer, "", "the trainer; default: ../trainer/trainer beside this program");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "launcher/launcher.cc";

std::string Count(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

StatusOr<std::string> FindTrainer() {
  std::string path = FLAGS_trainer;
  std::error_code error;
  if (path.empty()) {
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
    path = own.parent_path().parent_path() / "trainer" / "trainer";
  }
  if (access(path.c_str(), X_OK) == 0) return std::filesystem::absolute(path, error).string();
  return UserError("--trainer=" + path + ": " + std::strerror(errno) +
                   "; expected the trainer's program");
}

// Lets one launcher at a time work in the folder, which it makes where it is missing.
class FolderLock {
 public:
  ~FolderLock() {
    if (lock_ >= 0) close(lock_);
  }

  Status Take(const SweepFiles& files) {
    std::error_code none;
    const bool used = !std::filesystem::is_empty(files.root, none) && !none;
    if (used && !std::filesystem::exists(files.Lock(), none)) {
      return UserError("--output_dir=" + files.root +
                       ": holds something and no sweep; expected a new or empty directory, or a "
                       "sweep's own");
    }
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(files.root));
    lock_ = open(files.Lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) return UserError(files.Lock() + ": " + std::strerror(errno));
    // --status holds it for a moment when it looks.
    constexpr int kLooks = 20, kMicroseconds = 10'000;
    for (int look = 0; flock(lock_, LOCK_EX | LOCK_NB) != 0; ++look) {
      if (look < kLooks) {
        usleep(kMicroseconds);
        continue;
      }
      return UserError("--output_dir=" + files.root + ": " + WorkingLauncher(files) +
                       " is at work there; --status shows how far it is");
    }
    const std::string text = std::to_string(getpid()) + " on host " + ReadMachine().host + "\n";
    if (ftruncate(lock_, 0) != 0 ||
        pwrite(lock_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      return MachineError(files.Lock() + ": write: " + std::strerror(errno));
    }
    return OkStatus();
  }

 private:
  int lock_ = -1;
};

// The runs that do not fit, as one line; empty: all do.
std::string Misfits(const Plan& plan, const Machine& machine) {
  size_t count = 0;
  std::string first;
  for (const PlannedRun& run : plan.runs) {
    const std::string why = Misfit(run, machine);
    if (why.empty()) continue;
    if (count++ == 0) first = run.folder + " " + why;
  }
  if (count == 0) return "";
  return Count(count, "run") + " of " + std::to_string(plan.runs.size()) +
         " cannot run on this machine; the first: " + first;
}

// What is left to do of a plan takes of this machine: "about 3.1 core-hours, 1.6 h on 2 cores".
std::string TimeText(const Plan& plan, const std::vector<bool>& done, const TimeEstimate& estimate,
                     const Machine& machine) {
  std::vector<Work> work;
  double core_seconds = 0;
  bool known = true;
  const auto add = [&](const PlannedRun& run) {
    const std::optional<double> seconds = estimate.Seconds(run);
    known = known && seconds && Misfit(run, machine).empty();
    if (!known) return;
    work.push_back({*seconds, run.cores()});
    core_seconds += *seconds * run.cores();
  };
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    if (!done[i]) add(plan.runs[i]);
  }
  for (const LaterRuns& later : plan.later) {
    for (int64_t i = 0; i < later.count; ++i) add(later.each);
  }
  if (!known) return "times are not known before --calibrate has been given once";
  const auto cores = static_cast<int>(machine.cores.size());
  constexpr double kHour = 3600;
  constexpr size_t kLine = 128;
  char line[kLine];
  std::snprintf(line, kLine, "%sabout %.3g core-hours, %s on %d cores, to do",
                plan.later.empty() ? "" : "at most ", core_seconds / kHour,
                Duration(SecondsOnCores({}, std::move(work), cores)).c_str(), cores);
  return line;
}

std::string DryRun(const Plan& plan, const SweepFiles& files, const Machine& machine,
                   const std::string& trainer) {
  const TimeEstimate estimate = EstimateFrom(plan, files, machine);
  std::vector<bool> is_done;
  size_t width = 0;
  for (const PlannedRun& run : plan.runs) width = std::max(width, run.folder.size());
  std::string text;
  double multiply_adds = 0;
  size_t done = 0;
  constexpr size_t kLine = 512;
  char line[kLine];
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    const bool resume = status.state == RunState::kCutOff;
    const std::string misfit = Misfit(run, machine);
    const char* state = !misfit.empty()                      ? "too large"
                        : status.state == RunState::kDone    ? "done"
                        : status.state == RunState::kFailed  ? "failed"
                        : status.state == RunState::kWaiting ? "new"
                                                             : "cut off";
    done += status.state == RunState::kDone;
    is_done.push_back(status.state == RunState::kDone);
    const std::optional<double> seconds = estimate.Seconds(run);
    multiply_adds += static_cast<double>(run.samples) * static_cast<double>(run.multiply_adds);
    std::snprintf(line, kLine,
                  "%-*s  %-9s  dense %9lld  embedding %11lld  multiply-adds %9lld  steps %7lld  "
                  "memory %6.2f GB  cores %d  time %7s  ",
                  static_cast<int>(width), run.folder.c_str(), state,
                  static_cast<long long>(run.dense_parameters),
                  static_cast<long long>(run.embedding_parameters),
                  static_cast<long long>(run.multiply_adds), static_cast<long long>(run.steps),
                  static_cast<double>(run.bytes_of_rank) / 1e9, run.cores(),
                  seconds ? Duration(*seconds).c_str() : "?");
    text += line;
    text += Joined(Command(run, files, trainer, resume)) + "\n";
  }
  int64_t later_final = 0, later_trials = 0;
  for (const LaterRuns& later : plan.later) {
    (later.each.stage == Stage::kTune ? later_trials : later_final) += later.count;
    multiply_adds += static_cast<double>(later.count) * static_cast<double>(later.each.samples) *
                     static_cast<double>(later.each.multiply_adds);
  }
  if (!plan.later.empty()) {
    std::snprintf(line, kLine, "%lld final runs follow; before them at most %lld more trials\n",
                  static_cast<long long>(later_final), static_cast<long long>(later_trials));
    text += line;
  }
  std::snprintf(line, kLine, "%s%.3g multiply-adds forward in all",
                later_trials > 0 ? "at most " : "", multiply_adds);
  const std::string total = multiply_adds > 0 ? line : "cost unknown without data.path";
  std::snprintf(line, kLine,
                "sweep %s: %s, %zu done; %s; %s; %zu cores and %.1f GB of memory here\n",
                plan.name.c_str(), Count(plan.runs.size(), "run").c_str(), done, total.c_str(),
                TimeText(plan, is_done, estimate, machine).c_str(), machine.cores.size(),
                static_cast<double>(machine.memory_bytes) / 1e9);
  return text + line;
}

// What a changed sweep means for the runs that are there; empty: nothing has changed.
std::string ChangeLine(const PlanChange& change) {
  if (change.kept + change.left.size() == 0) return "";
  if (change.fresh == 0 && change.left.empty()) return "";
  std::string line = Count(change.kept, "run") + " kept, " + std::to_string(change.fresh) + " new";
  if (change.left.empty()) return line + "\n";
  line +=
      ", " + std::to_string(change.left.size()) + " no longer in the sweep (their folders stay):";
  for (const std::string& folder : change.left) line += " " + folder;
  return line + "\n";
}

Status PrintStatus(const SweepFiles& files) {
  if (std::error_code none; !std::filesystem::exists(files.Plan(), none)) {
    return UserError("--output_dir=" + files.root +
                     ": holds no sweep; expected one that was begun");
  }
  ELASTOR_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(files));
  return WriteToStdout(StatusTable(plan, files));
}

Status CheckFlags() {
  if (FLAGS_output_dir.empty()) {
    return UserError("--output_dir: missing; expected a directory for the sweep");
  }
  if (FLAGS_sweep.empty() && !FLAGS_status) {
    return UserError("--sweep: missing; expected a file, as configs/sweeps/quick.textproto");
  }
  if (FLAGS_status && FLAGS_dry_run) return UserError("--status and --dry_run: expected one");
  return OkStatus();
}

// The exit code of the first failed run; a code of its own becomes that of a machine's failure. A
// trial that diverged is a result.
Status Outcome(const Plan& plan, const SweepFiles& files) {
  size_t failed = 0;
  StatusCode code = StatusCode::kOk;
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    if (status.state != RunState::kFailed) continue;
    const int exit_code = status.attempts.exit_code;
    const bool diverged = exit_code == static_cast<int>(StatusCode::kDiverged);
    if (diverged && run.stage == Stage::kTune) continue;
    if (failed++ > 0) continue;
    code = diverged || exit_code == 2 ? static_cast<StatusCode>(exit_code) : StatusCode::kMachine;
  }
  if (failed > 0) {
    return Status(code, Count(failed, "run") + " of " + std::to_string(plan.runs.size()) +
                            " failed; --status says why, " + files.root +
                            "/logs has their output; --retry_failed tries them again");
  }
  for (const TunedConfiguration& tuned : plan.tuned) {
    if (tuned.failure.empty()) continue;
    return Status(StatusCode::kDiverged, "tuning of " + tuned.name + ": " + tuned.failure +
                                             "; its final runs are left out");
  }
  return OkStatus();
}

// Why the runs of a plan cannot be started here.
Status CheckRuns(const Plan& plan, const Machine& machine) {
  const std::string misfits = Misfits(plan, machine);
  if (!misfits.empty()) return UserError(FLAGS_sweep + ": " + misfits);
  if (std::ranges::all_of(plan.runs, [](const PlannedRun& run) { return run.steps > 0; })) {
    return OkStatus();
  }
  return UserError(FLAGS_sweep +
                   ": data.path: empty; expected a prepared data set, "
                   "--set=base.data.path=directory");
}

// A line for every configuration whose tuning is over and was not in `said`, which it joins.
std::string TuningLines(const Plan& plan, std::set<std::string>* said) {
  std::string lines;
  for (const TunedConfiguration& tuned : plan.tuned) {
    if (tuned.chosen.empty() && tuned.failure.empty()) continue;
    if (!said->insert(tuned.name).second) continue;
    if (!tuned.failure.empty()) {
      lines += "warning: tuning of " + tuned.name + ": " + tuned.failure + "\n";
      continue;
    }
    lines += "tuned " + tuned.name + ": " + tuned.chosen + "\n";
    if (tuned.warning.empty()) continue;
    lines += "warning: " + tuned.name + ": " + tuned.warning + "\n";
  }
  return lines;
}

bool HasRunsToDo(const Plan& plan, const SweepFiles& files) {
  return std::ranges::any_of(plan.runs, [&](const PlannedRun& run) {
    const RunState state = ReadStatus(run, files).state;
    return state == RunState::kWaiting || state == RunState::kCutOff;
  });
}

// Runs what can be known of the sweep, and again what is known then, until nothing is left.
Status RunAll(const Sweep& sweep, const SweepFiles& files, const Machine& machine,
              const std::string& trainer) {
  std::set<std::string> said;
  for (bool first = true;; first = false) {
    ELASTOR_ASSIGN_OR_RETURN(Plan plan, MakePlan(sweep, FLAGS_sweep, files));
    const PlanChange change = AdoptFolders(files, &plan);
    ELASTOR_RETURN_IF_ERROR(CheckRuns(plan, machine));
    ELASTOR_RETURN_IF_ERROR(WritePlan(plan, files));
    ELASTOR_RETURN_IF_ERROR(
        WriteToStdout((first ? ChangeLine(change) : "") + TuningLines(plan, &said)));
    if (first && FLAGS_retry_failed) {
      for (const PlannedRun& run : plan.runs) {
        if (ReadStatus(run, files).state != RunState::kFailed) continue;
        ELASTOR_RETURN_IF_ERROR(AppendForgiveness(files.Attempts(run.folder)));
      }
      continue;
    }
    const bool over = !first && !HasRunsToDo(plan, files);
    ELASTOR_RETURN_IF_ERROR(ContinueTrials(plan, files));
    const Status ran = over ? OkStatus() : RunLocally(plan, files, machine, trainer);
    ELASTOR_RETURN_IF_ERROR(WriteTable(plan, files));
    ELASTOR_RETURN_IF_ERROR(ran);
    if (!over && !plan.tuned.empty()) continue;
    ELASTOR_RETURN_IF_ERROR(
        WriteToStdout("sweep " + plan.name + ": the results are in " + files.Table() + "\n"));
    return Outcome(plan, files);
  }
}

// The folders that runs need.
Status MakeFolders(const SweepFiles& files) {
  for (const char* directory : {"/runs", "/experiments", "/logs", "/attempts"}) {
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(files.root + directory));
  }
  return OkStatus();
}

Status Calibrate(const Plan& plan, const SweepFiles& files, const Machine& machine,
                 const std::string& trainer) {
  const SweepFiles there = CalibrationFiles(files, machine);
  const Plan calibration = CalibrationPlan(plan);
  ELASTOR_RETURN_IF_ERROR(MakeFolders(there));
  ELASTOR_RETURN_IF_ERROR(WritePlan(calibration, there));
  if (!HasRunsToDo(calibration, there)) return OkStatus();
  return RunLocally(calibration, there, machine, trainer);
}

Status Sweeps(const SweepFiles& files, const std::vector<std::string>& overrides) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string trainer, FindTrainer());
  ELASTOR_ASSIGN_OR_RETURN(const Sweep sweep, LoadSweep(FLAGS_sweep, overrides));
  ELASTOR_ASSIGN_OR_RETURN(Plan plan, MakePlan(sweep, FLAGS_sweep, files));
  const Machine machine = ReadMachine();
  FolderLock lock;
  if (FLAGS_calibrate || !FLAGS_dry_run) {
    ELASTOR_RETURN_IF_ERROR(CheckRuns(plan, machine));
    ELASTOR_RETURN_IF_ERROR(lock.Take(files));
    ELASTOR_RETURN_IF_ERROR(MakeFolders(files));
  }
  if (FLAGS_calibrate) ELASTOR_RETURN_IF_ERROR(Calibrate(plan, files, machine, trainer));
  if (FLAGS_dry_run) {
    const PlanChange change = AdoptFolders(files, &plan);
    ELASTOR_RETURN_IF_ERROR(
        WriteToStdout(DryRun(plan, files, machine, trainer) + ChangeLine(change)));
    const std::string misfits = Misfits(plan, machine);
    return misfits.empty() ? OkStatus() : UserError(FLAGS_sweep + ": " + misfits);
  }
  return RunAll(sweep, files, machine, trainer);
}

Status Run(const std::vector<std::string>& arguments) {
  ELASTOR_ASSIGN_OR_RETURN(const CommandLine command_line,
                           ParseCommandLine(arguments, kSourceFile));
  if (command_line.help) {
    return WriteToStdout("launcher: runs a sweep of training runs on this machine\n" +
                         FlagsHelp(kSourceFile));
  }
  ELASTOR_RETURN_IF_ERROR(CheckFlags());
  std::error_code none;
  const SweepFiles files = {std::filesystem::absolute(FLAGS_output_dir, none).lexically_normal()};
  return FLAGS_status ? PrintStatus(files) : Sweeps(files, command_line.overrides);
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  elastor::PrepareStandardStreams();
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  const elastor::Status status = elastor::Run({argv + 1, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "launcher: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}
