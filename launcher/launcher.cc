// The launcher's command line: a sweep in, its runs' folders and a table out (docs/operations.md).
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "gflags/gflags.h"
#include "glog/logging.h"
#include "launcher/local_scheduler.h"
#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"
#include "launcher/slurm_array.h"
#include "launcher/slurm_element.h"
#include "launcher/slurm_scheduler.h"
#include "launcher/sweep_file.h"
#include "launcher/sweep_status.h"
#include "trainer/run/command_line.h"
#include "trainer/run/standard_streams.h"

DEFINE_string(sweep, "", "what to run: a text file of configs/proto/sweep.proto");
DEFINE_string(set, "",
              "base.path.to.field=value, a field of the base experiment, or resources.field=value "
              "or slurm.field=value; may be repeated");
DEFINE_string(output_dir, "", "where the sweep is written: a new directory, or this sweep's own");
DEFINE_bool(dry_run, false, "print every run with its size and command, and start none");
DEFINE_bool(status, false, "print how far the sweep in --output_dir is; needs no --sweep");
DEFINE_bool(retry_failed, false, "try failed runs again, also those that would not be");
DEFINE_string(scheduler, "local", "where runs go: local, this machine, or slurm, job arrays");
DEFINE_bool(detach, false, "with --scheduler=slurm: end when all is submitted");
DEFINE_bool(cancel, false, "cancel the jobs that the sweep in --output_dir has in Slurm");
DEFINE_bool(advance, false, "by the launcher's own job: submit what is left, and end");
DEFINE_int32(element, 0, "by the launcher's own jobs: run an element of this array, from 1");
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
  ~FolderLock() { Release(); }

  void Release() {
    if (lock_ >= 0) close(lock_);
    lock_ = -1;
  }
  bool IsHeld() const { return lock_ >= 0; }

  // --status holds it for a moment when it looks: tries for `seconds`.
  Status Take(const SweepFiles& files, double seconds = 0.2) {
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
    constexpr int kMicroseconds = 10'000;
    const Clock::time_point start = Clock::now();
    while (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      if (SecondsSince(start) < seconds) {
        usleep(kMicroseconds);
        continue;
      }
      Release();
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

// `slurm`: nothing for this machine.
std::string DryRun(const Plan& plan, const SweepFiles& files, const Machine& machine,
                   const std::string& trainer, const Slurm* slurm) {
  size_t width = 0;
  for (const PlannedRun& run : plan.runs) width = std::max(width, run.folder.size());
  std::string text;
  double multiply_adds = 0;
  size_t done = 0;
  constexpr size_t kLine = 512;
  char line[kLine];
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    const std::string misfit = slurm == nullptr ? Misfit(run, machine) : "";
    const char* state = !misfit.empty()                      ? "too large"
                        : status.state == RunState::kDone    ? "done"
                        : status.state == RunState::kFailed  ? "failed"
                        : status.state == RunState::kWaiting ? "new"
                                                             : "cut off";
    done += status.state == RunState::kDone;
    multiply_adds += static_cast<double>(run.samples) * static_cast<double>(run.multiply_adds);
    std::snprintf(line, kLine,
                  "%-*s  %-9s  dense %9lld  embedding %11lld  multiply-adds %9lld  steps %7lld  "
                  "memory %6.2f GB  cores %d  ",
                  static_cast<int>(width), run.folder.c_str(), state,
                  static_cast<long long>(run.dense_parameters),
                  static_cast<long long>(run.embedding_parameters),
                  static_cast<long long>(run.multiply_adds), static_cast<long long>(run.steps),
                  static_cast<double>(run.bytes_of_rank) / 1e9, run.cores());
    text += line;
    text += Joined(slurm == nullptr ? LocalCommand(run, files, trainer)
                                    : JobCommand(run, files, trainer, *slurm));
    text += status.state == RunState::kCutOff ? " --resume\n" : "\n";
  }
  std::snprintf(line, kLine, "%.3g multiply-adds forward in all", multiply_adds);
  const std::string total = multiply_adds > 0 ? line : "cost unknown without data.path";
  std::snprintf(line, kLine, "sweep %s: %s, %zu done; %s; %zu cores and %.1f GB of memory here\n",
                plan.name.c_str(), Count(plan.runs.size(), "run").c_str(), done, total.c_str(),
                machine.cores.size(), static_cast<double>(machine.memory_bytes) / 1e9);
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
  const auto jobs = JobStates(files);
  ELASTOR_RETURN_IF_ERROR(WriteToStdout(
      StatusTable(plan, files, jobs.ok() ? *jobs : std::map<std::string, std::string>())));
  // The files alone do not tell whether Slurm has an element.
  return jobs.status();
}

Status CheckFlags() {
  if (FLAGS_output_dir.empty()) {
    return UserError("--output_dir: missing; expected a directory for the sweep");
  }
  if (FLAGS_scheduler != "local" && FLAGS_scheduler != "slurm") {
    return UserError("--scheduler=" + FLAGS_scheduler + ": expected local or slurm");
  }
  if (FLAGS_detach && FLAGS_scheduler != "slurm") {
    return UserError("--detach: expected --scheduler=slurm with it");
  }
  if (FLAGS_sweep.empty() && !FLAGS_status && !FLAGS_cancel && FLAGS_element == 0) {
    return UserError("--sweep: missing; expected a file, as configs/sweeps/quick.textproto");
  }
  if (FLAGS_status && FLAGS_dry_run) return UserError("--status and --dry_run: expected one");
  return OkStatus();
}

// The exit code of the first failed run; a code of its own becomes that of a machine's failure.
Status Outcome(const Plan& plan, const SweepFiles& files) {
  size_t failed = 0;
  StatusCode code = StatusCode::kOk;
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    if (status.state != RunState::kFailed) continue;
    if (failed++ > 0) continue;
    const int exit_code = status.attempts.exit_code;
    code = exit_code == 2 || exit_code == 4 ? static_cast<StatusCode>(exit_code)
                                            : StatusCode::kMachine;
  }
  if (failed == 0) return OkStatus();
  return Status(code, Count(failed, "run") + " of " + std::to_string(plan.runs.size()) +
                          " failed; --status says why, " + files.root +
                          "/logs has their output; --retry_failed tries them again");
}

// Runs on this machine do not meet those of Slurm.
Status CheckNoJobs(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const auto jobs, JobStates(files));
  if (jobs.empty()) return OkStatus();
  return UserError("--output_dir=" + files.root + ": Slurm has " + Count(jobs.size(), "run") +
                   " of it; expected --scheduler=slurm, or --cancel first");
}

// Submits, and follows unless told otherwise. The lock is held when nothing is left to do.
Status RunThroughSlurm(const Plan& plan, const SweepFiles& files, Sweep sweep,
                       const std::string& trainer, FolderLock* lock) {
  const std::string copy = files.Slurm() + "/sweep.textproto";
  sweep.set_name(plan.name);
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(files.Slurm()));
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(copy, SweepText(sweep)));
  std::error_code none;
  const SlurmSweep slurm = {
      plan,
      files,
      sweep.slurm(),
      trainer,
      {std::filesystem::read_symlink("/proc/self/exe", none), "--scheduler=slurm", "--advance",
       "--sweep=" + copy, "--output_dir=" + files.root, "--trainer=" + trainer}};
  Submitter submitter = FLAGS_advance ? Submitter::kNobody : Submitter::kUser;
  constexpr double kMostSecondsOfOthers = 60;
  while (true) {
    ELASTOR_ASSIGN_OR_RETURN(const int elements, SubmitWhatIsLeft(slurm, submitter));
    if (elements == 0) return OkStatus();
    lock->Release();
    if (FLAGS_detach || FLAGS_advance) {
      return WriteToStdout("sweep " + plan.name + ": " + std::to_string(elements) +
                           " runs in Slurm; --status shows them, --cancel cancels them\n");
    }
    ELASTOR_RETURN_IF_ERROR(FollowJobs(plan, files));
    ELASTOR_RETURN_IF_ERROR(lock->Take(files, kMostSecondsOfOthers));
    submitter = Submitter::kNobody;
  }
}

Status Sweeps(const SweepFiles& files, const std::vector<std::string>& overrides) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string trainer, FindTrainer());
  ELASTOR_ASSIGN_OR_RETURN(const Sweep sweep, LoadSweep(FLAGS_sweep, overrides));
  ELASTOR_ASSIGN_OR_RETURN(Plan plan, MakePlan(sweep, FLAGS_sweep));
  const bool slurm = FLAGS_scheduler == "slurm";
  if (slurm) {
    const Status valid = CheckSlurm(sweep);
    if (!valid.ok()) return UserError(FLAGS_sweep + ": " + valid.message());
  }
  const Machine machine = ReadMachine();
  const PlanChange change = AdoptFolders(files, &plan);
  const std::string misfits = slurm ? "" : Misfits(plan, machine);
  if (FLAGS_dry_run) {
    ELASTOR_RETURN_IF_ERROR(
        WriteToStdout(DryRun(plan, files, machine, trainer, slurm ? &sweep.slurm() : nullptr) +
                      (slurm ? DrySubmission({plan, files, sweep.slurm(), trainer, {}}) : "") +
                      ChangeLine(change)));
  }
  if (!misfits.empty()) return UserError(FLAGS_sweep + ": " + misfits);
  if (FLAGS_dry_run) return OkStatus();
  const bool has_data =
      std::ranges::all_of(plan.runs, [](const PlannedRun& run) { return run.steps > 0; });
  if (!has_data) {
    return UserError(FLAGS_sweep +
                     ": data.path: empty; expected a prepared data set, "
                     "--set=base.data.path=directory");
  }
  FolderLock lock;
  ELASTOR_RETURN_IF_ERROR(lock.Take(files));
  if (!slurm) ELASTOR_RETURN_IF_ERROR(CheckNoJobs(files));
  for (const char* directory : {"/runs", "/experiments", "/logs", "/attempts"}) {
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(files.root + directory));
  }
  ELASTOR_RETURN_IF_ERROR(WriteToStdout(ChangeLine(change)));
  ELASTOR_RETURN_IF_ERROR(WritePlan(plan, files));
  for (const PlannedRun& run : plan.runs) {
    if (!FLAGS_retry_failed || ReadStatus(run, files).state != RunState::kFailed) continue;
    ELASTOR_RETURN_IF_ERROR(AppendForgiveness(files.Attempts(run.folder)));
  }
  const Status ran = slurm ? RunThroughSlurm(plan, files, sweep, trainer, &lock)
                           : RunLocally(plan, files, machine, trainer);
  if (!lock.IsHeld()) return ran;
  ELASTOR_RETURN_IF_ERROR(WriteTable(plan, files));
  ELASTOR_RETURN_IF_ERROR(ran);
  ELASTOR_RETURN_IF_ERROR(
      WriteToStdout("sweep " + plan.name + ": the results are in " + files.Table() + "\n"));
  return Outcome(plan, files);
}

Status Run(const std::vector<std::string>& arguments) {
  ELASTOR_ASSIGN_OR_RETURN(const CommandLine command_line,
                           ParseCommandLine(arguments, kSourceFile));
  if (command_line.help) {
    return WriteToStdout(
        "launcher: runs a sweep of training runs on this machine or through Slurm\n" +
        FlagsHelp(kSourceFile));
  }
  ELASTOR_RETURN_IF_ERROR(CheckFlags());
  std::error_code none;
  // One name for one folder, with or without a slash at its end.
  const SweepFiles files = {
      (std::filesystem::absolute(FLAGS_output_dir, none) / "").lexically_normal().parent_path()};
  if (FLAGS_element > 0) return RunElement(files, FLAGS_element);
  if (FLAGS_cancel) return CancelJobs(files);
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
