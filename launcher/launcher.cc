// The launcher's command line: a sweep in, its runs' folders and a table out (docs/operations.md).
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
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
#include "launcher/sweep_report/sweep_report.h"
#include "launcher/sweep_status.h"
#include "trainer/run/command_line.h"
#include "trainer/run/standard_streams.h"

DEFINE_string(sweep, "", "what to run: a text file of configs/proto/sweep.proto");
DEFINE_string(set, "",
              "base.path.to.field=value, a field of the base experiment, or resources.ranks=N or "
              "resources.threads=N; may be repeated");
DEFINE_string(output_dir, "", "where the sweep is written: a new directory, or this sweep's own");
DEFINE_bool(dry_run, false, "print every run with its size and command, and start none");
DEFINE_bool(status, false, "print how far the sweep in --output_dir is; needs no --sweep");
DEFINE_bool(report, false,
            "write the report of the sweep in --output_dir as far as it is; needs no --sweep");
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

std::string DryRun(const Plan& plan, const SweepFiles& files, const Machine& machine,
                   const std::string& trainer) {
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
    text += Joined(Command(run, files, trainer, resume)) + "\n";
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

Status CheckBegun(const SweepFiles& files) {
  if (std::error_code none; std::filesystem::exists(files.Plan(), none)) return OkStatus();
  return UserError("--output_dir=" + files.root + ": holds no sweep; expected one that was begun");
}

Status PrintStatus(const SweepFiles& files) {
  ELASTOR_RETURN_IF_ERROR(CheckBegun(files));
  ELASTOR_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(files));
  return WriteToStdout(StatusTable(plan, files));
}

Status WriteReport(const SweepFiles& files) {
  ELASTOR_RETURN_IF_ERROR(CheckBegun(files));
  ELASTOR_ASSIGN_OR_RETURN(const std::string written, WriteSweepReport(files));
  return WriteToStdout(written);
}

Status CheckFlags() {
  if (FLAGS_output_dir.empty()) {
    return UserError("--output_dir: missing; expected a directory for the sweep");
  }
  if (FLAGS_sweep.empty() && !FLAGS_status && !FLAGS_report) {
    return UserError("--sweep: missing; expected a file, as configs/sweeps/quick.textproto");
  }
  if (FLAGS_status + FLAGS_dry_run + FLAGS_report > 1) {
    return UserError("--status, --dry_run and --report: expected one");
  }
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

Status Sweeps(const SweepFiles& files, const std::vector<std::string>& overrides) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string trainer, FindTrainer());
  ELASTOR_ASSIGN_OR_RETURN(const Sweep sweep, LoadSweep(FLAGS_sweep, overrides));
  ELASTOR_ASSIGN_OR_RETURN(Plan plan, MakePlan(sweep, FLAGS_sweep));
  const Machine machine = ReadMachine();
  const PlanChange change = AdoptFolders(files, &plan);
  const std::string misfits = Misfits(plan, machine);
  if (FLAGS_dry_run) {
    ELASTOR_RETURN_IF_ERROR(
        WriteToStdout(DryRun(plan, files, machine, trainer) + ChangeLine(change)));
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
  for (const char* directory : {"/runs", "/experiments", "/logs", "/attempts"}) {
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(files.root + directory));
  }
  ELASTOR_RETURN_IF_ERROR(WriteToStdout(ChangeLine(change)));
  ELASTOR_RETURN_IF_ERROR(WritePlan(plan, files));
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(files.Sweep(), SweepText(sweep)));
  for (const PlannedRun& run : plan.runs) {
    if (!FLAGS_retry_failed || ReadStatus(run, files).state != RunState::kFailed) continue;
    ELASTOR_RETURN_IF_ERROR(AppendForgiveness(files.Attempts(run.folder)));
  }
  const Status ran = RunLocally(plan, files, machine, trainer);
  ELASTOR_RETURN_IF_ERROR(WriteTable(plan, files));
  ELASTOR_RETURN_IF_ERROR(ran);
  ELASTOR_RETURN_IF_ERROR(
      WriteToStdout("sweep " + plan.name + ": the results are in " + files.Table() + "\n"));
  ELASTOR_RETURN_IF_ERROR(WriteReport(files));
  return Outcome(plan, files);
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
  if (FLAGS_status) return PrintStatus(files);
  if (FLAGS_report) return WriteReport(files);
  return Sweeps(files, command_line.overrides);
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
