// The launcher's command line: a sweep in, its runs' folders and a table out (docs/use/sweeps.md).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/process/build_info.h"
#include "core/process/claimed_folder.h"
#include "core/process/command_line.h"
#include "core/process/job_process.h"
#include "core/process/standard_streams.h"
#include "gflags/gflags.h"
#include "launcher/dry_run.h"
#include "launcher/folder_lock.h"
#include "launcher/kept_folders.h"
#include "launcher/local_scheduler.h"
#include "launcher/machine.h"
#include "launcher/make_plan.h"
#include "launcher/plan.h"
#include "launcher/plan_file.h"
#include "launcher/point_sizes.h"
#include "launcher/predicted_times.h"
#include "launcher/rename_label.h"
#include "launcher/run_command.h"
#include "launcher/run_folder.h"
#include "launcher/slurm_array.h"
#include "launcher/slurm_element.h"
#include "launcher/slurm_scheduler.h"
#include "launcher/sweep_file.h"
#include "launcher/sweep_report/sweep_report.h"
#include "launcher/sweep_status.h"
#include "launcher/time_estimate.h"
#include "trainer/fields/field_help.h"

DEFINE_string(sweep, "", "what to run: a text file of configs/proto/sweep.proto");
DEFINE_string(set, "",
              "base.path.to.field=value, a field of the base experiment, "
              "axis.path.to.field=value,value, other values of an axis, resources.field=value, "
              "slurm.field=value, gap_test.field=value, of all tests, or match.field=value; may be "
              "repeated");
DEFINE_string(output_dir, "", "where the sweep is written: a new directory, or this sweep's own");
DEFINE_bool(dry_run, false, "print every run with its size and command, and start none");
DEFINE_bool(calibrate, false,
            "before all else, time short runs of a few sizes, for the times that --dry_run and the "
            "launcher's lines estimate; done once in an --output_dir");
DEFINE_bool(status, false, "print how far the sweep in --output_dir is; needs no --sweep");
DEFINE_bool(report, false,
            "write the report of the sweep in --output_dir as far as it is; needs no --sweep");
DEFINE_string(export, "",
              "csv or json: with --report also a file of the data behind every picture, "
              "report/NAME.csv");
DEFINE_string(rename, "",
              "OLD=NEW: give a label of the sweep in --output_dir another name, in its tables and "
              "its report; needs no --sweep");
DEFINE_bool(retry_failed, false, "try failed runs again, also those that would not be");
DEFINE_string(scheduler, "local", "where runs go: local, this machine, or slurm, job arrays");
DEFINE_bool(
    rehearse_preemption, false,
    "stop every run once in mid-run, as a cluster would, and go on with it: its digest must "
    "be what it would have been; with --scheduler=local");
DEFINE_bool(
    detach, false,
    "go on in the background; --status shows how far it is, --stop stops it, its lines are in "
    "OUTPUT_DIR/launcher.log. With --scheduler=slurm: end when all is submitted");
DEFINE_bool(stop, false,
            "stop the sweep in --output_dir: its launcher, whose runs write checkpoints, which is "
            "waited for, and its jobs in Slurm; needs no --sweep");
DEFINE_bool(advance, false, "by the launcher's own job: submit what is left, and end");
DEFINE_int32(element, 0, "by the launcher's own jobs: run an element of this array, from 1");
DEFINE_string(trainer, "", "the trainer; default: ../trainer/trainer beside this program");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "launcher/launcher.cc";

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
  return StrCat(CountText(count, "run"), " of ", plan.runs.size(),
                " cannot run on this machine; the first: ", first);
}

// What a changed sweep means for the runs that are there; empty: nothing has changed.
std::string ChangeLine(const PlanChange& change) {
  if (change.kept + change.left.size() == 0) return "";
  if (change.fresh == 0 && change.left.empty()) return "";
  std::string line = StrCat(CountText(change.kept, "run"), " kept, ", change.fresh, " new");
  if (change.left.empty()) return line + "\n";
  StrAppend(&line, ", ", change.left.size(), " no longer in the sweep (their folders stay):");
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
  const auto jobs = JobStates(files);
  ELASTOR_RETURN_IF_ERROR(WriteToStdout(
      StatusTable(plan, files, jobs.ok() ? *jobs : std::map<std::string, std::string>())));
  // The files alone do not tell whether Slurm has an element.
  return jobs.status();
}

Status WriteReport(const SweepFiles& files) {
  ELASTOR_RETURN_IF_ERROR(CheckBegun(files));
  ELASTOR_ASSIGN_OR_RETURN(const std::string written,
                           WriteSweepReport(files, {}, ExportFormatOf(FLAGS_export)));
  return WriteToStdout(written);
}

Status CheckFlags() {
  if (FLAGS_output_dir.empty()) {
    return UserError("--output_dir: missing; expected a directory for the sweep");
  }
  if (FLAGS_scheduler != "local" && FLAGS_scheduler != "slurm") {
    return UserError("--scheduler=" + FLAGS_scheduler + ": expected local or slurm");
  }
  if (FLAGS_rehearse_preemption && FLAGS_scheduler != "local") {
    return UserError("--rehearse_preemption: expected --scheduler=local with it");
  }
  if (!FLAGS_export.empty() && (!FLAGS_report || !ExportFormatOf(FLAGS_export))) {
    return UserError("--export=" + FLAGS_export + ": expected csv or json, with --report");
  }
  const bool renames = !FLAGS_rename.empty();
  const bool acts_alone =
      FLAGS_status || FLAGS_report || FLAGS_stop || renames || FLAGS_element > 0;
  if (FLAGS_sweep.empty() && !acts_alone) {
    return UserError("--sweep: missing; expected a file, as configs/sweeps/quick.textproto");
  }
  if (FLAGS_status + FLAGS_dry_run + FLAGS_report + FLAGS_stop + FLAGS_detach + renames > 1) {
    return UserError(
        "--status, --dry_run, --report, --rename, --stop and --detach: expected one of them at "
        "most");
  }
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
    return Status(code, StrCat(CountText(failed, "run"), " of ", plan.runs.size(),
                               " failed; --status says why, ", files.root,
                               "/logs has their output; --retry_failed tries them again"));
  }
  for (const TunedConfiguration& tuned : plan.tuned) {
    if (tuned.failure.empty()) continue;
    return Status(StatusCode::kDiverged, "tuning of " + tuned.name + ": " + tuned.failure +
                                             "; its final runs are left out");
  }
  return OkStatus();
}

bool ThroughSlurm() { return FLAGS_scheduler == "slurm"; }

// Why the runs of a plan cannot be started.
Status CheckRuns(const Plan& plan, const Machine& machine) {
  const std::string misfits = ThroughSlurm() ? "" : Misfits(plan, machine);
  if (!misfits.empty()) return UserError(FLAGS_sweep + ": " + misfits);
  if (!ThroughSlurm() &&
      std::ranges::any_of(plan.runs, [](const PlannedRun& run) { return run.ranks > 1; })) {
    ELASTOR_RETURN_IF_ERROR(CheckMpirun());
  }
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
    if (!tuned.bound.empty()) lines += "search " + tuned.name + ": " + tuned.bound + "\n";
    if (tuned.warning.empty()) continue;
    lines += "warning: " + tuned.name + ": " + tuned.warning + "\n";
  }
  return lines;
}

// A line for a sweep whose gap tests will find no training rows.
std::string GapLine(const Sweep& sweep) {
  if (sweep.gap_test().empty() || sweep.base().evaluation().train_rows() > 0) return "";
  return "warning: gap_test: base.evaluation.train_rows: 0; expected training rows to evaluate, "
         "without which no gap is tested\n";
}

bool HasRunsToDo(const Plan& plan, const SweepFiles& files) {
  return std::ranges::any_of(plan.runs, [&](const PlannedRun& run) {
    const RunState state = ReadStatus(run, files).state;
    return state == RunState::kWaiting || state == RunState::kCutOff;
  });
}

// Runs on this machine do not meet those of Slurm.
Status CheckNoJobs(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const auto jobs, JobStates(files));
  if (jobs.empty()) return OkStatus();
  return UserError("--output_dir=" + files.root + ": Slurm has " + CountText(jobs.size(), "run") +
                   " of it; expected --scheduler=slurm, or --stop first");
}

// User error when the folder is another sweep's: both would be in one report.
Status CheckName(const SweepFiles& files, const std::string& name) {
  ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(files.Sweep()));
  if (!there) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const Sweep sweep, LoadSweep(files.Sweep(), {}));
  if (sweep.name() == name) return OkStatus();
  return UserError("--output_dir=" + files.root + ": is of sweep '" + sweep.name() + "', not of '" +
                   name + "'; expected its own or a new directory");
}

// What becomes of the runs of a plan that are to do.
enum class Progress {
  kRan,   // those that can be now have been run
  kOver,  // there is none, or none that may be started
  kLeft,  // Slurm has them, and this process is to end; the lock is given back
};

class SweepRunner {
 public:
  SweepRunner(const Sweep& sweep, const SweepFiles& files, const Machine& machine,
              const std::string& trainer, FolderLock* lock)
      : sweep_(sweep), files_(files), machine_(machine), trainer_(trainer), lock_(*lock) {}

  // Runs what can be known of the sweep, and again what is known then, until nothing is left.
  Status Run() {
    if (!ThroughSlurm()) ELASTOR_RETURN_IF_ERROR(CheckNoJobs(files_));
    std::set<std::string> said;
    for (bool first = true;; first = false) {
      ELASTOR_ASSIGN_OR_RETURN(Plan plan, MakePlan(sweep_, FLAGS_sweep, files_));
      ELASTOR_RETURN_IF_ERROR(predicted_.Add(&plan));
      ELASTOR_RETURN_IF_ERROR(CheckName(files_, plan.name));
      ELASTOR_ASSIGN_OR_RETURN(const PlanChange change, AdoptFolders(files_, &plan));
      ELASTOR_RETURN_IF_ERROR(CheckRuns(plan, machine_));
      ELASTOR_RETURN_IF_ERROR(WritePlan(plan, files_));
      Sweep named = sweep_;
      named.set_name(plan.name);
      ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(files_.Sweep(), SweepText(named)));
      ELASTOR_RETURN_IF_ERROR(WriteToStdout((first ? ChangeLine(change) + GapLine(sweep_) : "") +
                                            TuningLines(plan, &said)));
      if (first && FLAGS_retry_failed) {
        for (const PlannedRun& run : plan.runs) {
          if (ReadStatus(run, files_).state != RunState::kFailed) continue;
          ELASTOR_RETURN_IF_ERROR(AppendForgiveness(files_.Attempts(run.folder)));
        }
        continue;
      }
      ELASTOR_RETURN_IF_ERROR(ContinueTrials(plan, files_));
      const StatusOr<Progress> progress = ThroughSlurm() ? Submit(plan, first) : Work(plan, first);
      if (progress.ok() && *progress == Progress::kLeft) return OkStatus();
      const Status written = lock_.IsHeld() ? WriteTable(plan, files_) : OkStatus();
      ELASTOR_RETURN_IF_ERROR(progress.status());
      ELASTOR_RETURN_IF_ERROR(written);
      if (*progress == Progress::kRan && (ThroughSlurm() || !plan.tuned.empty())) continue;
      ELASTOR_RETURN_IF_ERROR(WriteToStdout("sweep " + plan.name + ": the results are in " +
                                            WithoutControls(files_.Table()) + "\n"));
      ELASTOR_RETURN_IF_ERROR(WriteReport(files_));
      return Outcome(plan, files_);
    }
  }

 private:
  StatusOr<Progress> Work(const Plan& plan, bool first) {
    if (!first && !HasRunsToDo(plan, files_)) return Progress::kOver;
    ELASTOR_RETURN_IF_ERROR(
        RunLocally(plan, files_, machine_, trainer_, FLAGS_rehearse_preemption));
    return Progress::kRan;
  }

  // Submits, and follows unless told otherwise.
  StatusOr<Progress> Submit(const Plan& plan, bool first) {
    ELASTOR_RETURN_IF_ERROR(MakeWithin(files_.Slurm()));
    std::error_code none;
    const SlurmSweep slurm = {
        plan,
        files_,
        sweep_.slurm(),
        trainer_,
        {std::filesystem::read_symlink("/proc/self/exe", none), "--scheduler=slurm", "--advance",
         "--sweep=" + files_.Sweep(), "--output_dir=" + files_.root, "--trainer=" + trainer_}};
    const bool by_user = first && !FLAGS_advance;
    ELASTOR_ASSIGN_OR_RETURN(
        const int elements,
        SubmitWhatIsLeft(slurm, by_user ? Submitter::kUser : Submitter::kNobody));
    if (elements == 0) return Progress::kOver;
    lock_.Release();
    if (FLAGS_detach || FLAGS_advance) {
      ELASTOR_RETURN_IF_ERROR(
          WriteToStdout(StrCat("sweep ", plan.name, ": ", elements,
                               " runs in Slurm; --status shows them, --stop cancels them\n")));
      return Progress::kLeft;
    }
    ELASTOR_RETURN_IF_ERROR(FollowJobs(plan, files_));
    // The sweep's own job that went on with it may still be at work.
    constexpr double kMostSecondsOfOthers = 60;
    ELASTOR_RETURN_IF_ERROR(lock_.Take(files_, kMostSecondsOfOthers));
    return Progress::kRan;
  }

  const Sweep& sweep_;
  const SweepFiles& files_;
  const Machine& machine_;
  const std::string trainer_;
  PredictedTimes predicted_{trainer_};
  FolderLock& lock_;
};

// The folders that runs need.
Status MakeFolders(const SweepFiles& files) {
  for (const char* directory : {"/runs", "/experiments", "/logs", "/attempts"}) {
    ELASTOR_RETURN_IF_ERROR(MakeWithin(files.root + directory));
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
  return RunLocally(calibration, there, machine, trainer, /*rehearse=*/false);
}

Status Sweeps(const SweepFiles& files, const std::vector<std::string>& overrides) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string trainer, FindTrainer());
  ELASTOR_ASSIGN_OR_RETURN(Sweep sweep, LoadSweep(FLAGS_sweep, overrides));
  ELASTOR_RETURN_IF_ERROR(SetPointSizes(FLAGS_sweep, &sweep));
  ELASTOR_ASSIGN_OR_RETURN(Plan plan, MakePlan(sweep, FLAGS_sweep, files));
  if (FLAGS_dry_run) ELASTOR_RETURN_IF_ERROR(PredictedTimes(trainer).Add(&plan));
  if (ThroughSlurm()) {
    const Status valid = CheckSlurm(sweep);
    if (!valid.ok()) return UserError(FLAGS_sweep + ": " + valid.message());
  }
  const Machine machine = ReadMachine();
  FolderLock lock;
  if (FLAGS_calibrate || !FLAGS_dry_run) {
    ELASTOR_RETURN_IF_ERROR(CheckRuns(plan, machine));
    ELASTOR_RETURN_IF_ERROR(lock.Take(files));
    ELASTOR_RETURN_IF_ERROR(MakeFolders(files));
  }
  if (FLAGS_calibrate) ELASTOR_RETURN_IF_ERROR(Calibrate(plan, files, machine, trainer));
  if (FLAGS_dry_run) {
    ELASTOR_ASSIGN_OR_RETURN(const PlanChange change, AdoptFolders(files, &plan));
    ELASTOR_ASSIGN_OR_RETURN(
        const std::string told,
        DryRun(plan, files, machine, trainer, ThroughSlurm() ? &sweep.slurm() : nullptr));
    ELASTOR_RETURN_IF_ERROR(WriteToStdout(told + ChangeLine(change)));
    const std::string misfits = ThroughSlurm() ? "" : Misfits(plan, machine);
    return misfits.empty() ? OkStatus() : UserError(FLAGS_sweep + ": " + misfits);
  }
  if (FLAGS_detach && !ThroughSlurm()) {
    ELASTOR_RETURN_IF_ERROR(lock.Detach(
        files, "sweep " + plan.name + ": goes on in the background; launcher --status " +
                   "--output_dir=" + files.root + " shows how far it is, --stop " +
                   "instead stops it\n"));
  }
  return SweepRunner(sweep, files, machine, trainer, &lock).Run();
}

// A sweep is at work on this machine or in Slurm.
Status Stop(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const auto jobs, JobStates(files));
  if (jobs.empty()) return StopLauncher(files);
  return CancelJobs(files);
}

Status Rename(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const Renaming renaming, ParseRenaming(FLAGS_rename));
  ELASTOR_RETURN_IF_ERROR(CheckBegun(files));
  // A launcher at work would write its own names over the new ones.
  FolderLock lock;
  ELASTOR_RETURN_IF_ERROR(lock.Take(files));
  ELASTOR_RETURN_IF_ERROR(RenameLabel(files, renaming));
  return WriteReport(files);
}

Status Run(const std::vector<std::string>& arguments) {
  ELASTOR_ASSIGN_OR_RETURN(const CommandLine command_line,
                           ParseCommandLine(arguments, kSourceFile));
  if (!command_line.help_topic.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string help, HelpOn("Sweep", command_line.help_topic));
    return WriteToStdout(help);
  }
  if (command_line.help) {
    return WriteToStdout(
        "launcher: runs a sweep of training runs on this machine or through Slurm\n" +
        FlagsHelp(kSourceFile));
  }
  if (command_line.version) return WriteToStdout(VersionText("launcher"));
  ELASTOR_RETURN_IF_ERROR(CheckFlags());
  std::error_code none;
  // One name for one folder, with or without a slash at its end.
  const SweepFiles files = {
      (std::filesystem::absolute(FLAGS_output_dir, none) / "").lexically_normal().parent_path()};
  if (FLAGS_element > 0) return RunElement(files, FLAGS_element);
  if (FLAGS_stop) return Stop(files);
  if (FLAGS_status) return PrintStatus(files);
  if (FLAGS_report) return WriteReport(files);
  if (!FLAGS_rename.empty()) return Rename(files);
  return Sweeps(files, command_line.overrides);
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  elastor::PrepareStandardStreams();
  elastor::StartLog(argv[0]);
  const elastor::Status status = elastor::Run({argv + 1, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "launcher: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}
