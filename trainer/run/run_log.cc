#include "trainer/run/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/process/standard_streams.h"
#include "core/process/terminal.h"
#include "trainer/experiment/config.h"
#include "trainer/records/kept_metrics.h"
#include "trainer/records/metrics_csv.h"
#include "trainer/records/record_text.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {
namespace {

// Returns to the start of the line and erases it.
constexpr char kEraseLine[] = "\r\033[K";
const std::string kTemporary = ".tmp";  // AtomicFileWriter's

// Removes a file that need not be there.
Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return SystemError(path, "unlink");
}

Status AppendText(const std::string& text, const std::string& path, std::FILE* file) {
  std::fputs(text.c_str(), file);
  if (std::fflush(file) == 0 && std::ferror(file) == 0) return OkStatus();
  return MachineError(path + ": cannot write: " + std::strerror(errno));
}

}  // namespace

StatusOr<std::unique_ptr<RunLog>> RunLog::Open(const std::string& output_dir,
                                               const Experiment& experiment, int rank, Use use,
                                               int64_t step, std::optional<ClaimedFolder> claimed,
                                               const std::string& command) {
  std::unique_ptr<RunLog> log(new RunLog(output_dir, experiment, rank == 0, use, step, command));
  if (!log->writes_) return log;
  if (!claimed) {
    ELASTOR_ASSIGN_OR_RETURN(claimed, ClaimedFolder::Claim(output_dir));
  }
  log->folder_.emplace(*std::move(claimed));
  ELASTOR_RETURN_IF_ERROR(log->CheckContents());
  return log;
}

RunLog::RunLog(const std::string& output_dir, const Experiment& experiment, bool writes, Use use,
               int64_t step, const std::string& command)
    : output_dir_(output_dir),
      experiment_(experiment),
      writes_(writes),
      use_(use),
      step_(step),
      unfinished_(command + "\n" + ExperimentText(WithAbsolutePaths(experiment))),
      columns_(writes ? TerminalColumns() : 0),
      start_(Clock::now()),
      progress_clock_(/*terminal=*/columns_ > 0) {}

RunLog::~RunLog() {
  if (bar_shown_) WriteToStderr("\n");
  if (metrics_ != nullptr) std::fclose(metrics_);
  if (table_ != nullptr) std::fclose(table_);
}

Status RunLog::CheckContents() const {
  const StatusOr<std::set<std::string>> listed = NamesIn(output_dir_);
  if (!listed.ok()) {
    return Status(listed.status().code(), "--output_dir=" + listed.status().message());
  }
  const std::set<std::string>& names = *listed;
  if (names.empty()) return OkStatus();
  if (use_ == Use::kInference) {
    ELASTOR_ASSIGN_OR_RETURN(const bool own, HoldsOwnRemains(names));
    if (own) return OkStatus();
  }
  const std::string found = "--output_dir=" + output_dir_ + ": holds ";
  if (use_ == Use::kResumedTraining) {
    for (const char* name : {kCheckpointsFolder, kExperimentFile, kMetricsFile}) {
      if (names.contains(name)) return CheckRunToContinue();
    }
    return UserError(found + "'" + *names.begin() +
                     "' and no run; expected a run that --resume can continue, or a new or empty "
                     "directory");
  }
  for (const char* name :
       {kExperimentFile, kSummaryFile, kMetricsFile, kModelFolder, kCheckpointsFolder}) {
    if (!names.contains(name)) continue;
    return UserError(found + "a run already (" + name + "); expected a new or empty directory" +
                     (use_ == Use::kTraining ? ", or --resume to continue the run" : ""));
  }
  return UserError(found + "'" + *names.begin() + "'; expected a new or empty directory");
}

StatusOr<bool> RunLog::HoldsOwnRemains(const std::set<std::string>& names) const {
  // A mode that writes a line a row does so before anything is published.
  const auto is_temporary = [](const std::string& name) {
    constexpr const char* kFirst[] = {kPredictionsFile, kSpectraSamplesFile, kUnfinishedFile};
    return std::ranges::any_of(kFirst, [&](const char* file) { return name == file + kTemporary; });
  };
  if (std::ranges::all_of(names, is_temporary)) return true;
  if (!names.contains(kUnfinishedFile)) return false;
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(PathOf(kUnfinishedFile)));
  if (text == unfinished_) return true;
  return UserError("--output_dir=" + output_dir_ + ": holds what another command has left (" +
                   kUnfinishedFile + "); expected the same command, or a new or empty directory");
}

// What a checkpoint says of its run was compared by whoever found it.
Status RunLog::CheckRunToContinue() const {
  if (step_ > 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const bool finished, IsThere(PathOf(kSummaryFile)));
  if (finished) {
    return UserError("--output_dir=" + output_dir_ +
                     ": holds a finished run without checkpoints (" + kSummaryFile +
                     "); expected a run that --resume can continue, or a new directory without it");
  }
  const std::string path = PathOf(kExperimentFile);
  ELASTOR_ASSIGN_OR_RETURN(const bool begun, IsThere(path));
  if (!begun) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored, ReadRunExperiment(output_dir_));
  const std::string difference = NumericDifference(experiment_, stored);
  if (difference.empty()) return OkStatus();
  return UserError(difference + ", as in " + path +
                   ": a field that changes results must stay as it was");
}

Status RunLog::Begin(const std::string& plan, bool tensorboard, const std::string& machine) {
  if (!writes_) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(CheckInPlace());
  folder_->Keep();
  ELASTOR_RETURN_IF_ERROR(BeginFilling());
  const bool resumes = use_ == Use::kResumedTraining;
  std::string kept;
  // The run is not finished.
  if (use_ != Use::kTraining) ELASTOR_RETURN_IF_ERROR(RemoveFile(PathOf(kSummaryFile)));
  if (use_ == Use::kInference) ELASTOR_RETURN_IF_ERROR(RemoveFile(PathOf(kMetricsFile)));
  if (resumes) {
    ELASTOR_ASSIGN_OR_RETURN(kept, ReadKeptMetrics());
    // What is not there is not rewritten: its temporary file alone, left by a death, is no run.
    ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(PathOf(kMetricsFile)));
    if (there) ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(PathOf(kMetricsFile), kept));
  }
  // O_EXCL: of two runs started at once, one is refused, also on a file system without locks.
  const int flags = O_WRONLY | O_CREAT | O_APPEND;
  const StatusOr<int> metrics = OpenFile(PathOf(kMetricsFile), resumes ? flags : flags | O_EXCL);
  if (!metrics.ok() && !resumes) ELASTOR_RETURN_IF_ERROR(CheckContents());
  ELASTOR_RETURN_IF_ERROR(metrics.status());
  metrics_ = fdopen(*metrics, "a");
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(PathOf(kMetricsTableFile), MetricsCsv(kept)));
  ELASTOR_ASSIGN_OR_RETURN(const int table, OpenFile(PathOf(kMetricsTableFile), flags));
  table_ = fdopen(table, "a");
  if (tensorboard) {
    // metrics.jsonl keeps the records of the step that the run goes on after.
    ELASTOR_ASSIGN_OR_RETURN(
        tensorboard_, TensorBoardFile::Create(output_dir_, step_ + 1, SettingTexts(experiment_)));
  }
  ELASTOR_RETURN_IF_ERROR(
      WriteFileAtomically(PathOf(kExperimentFile), ExperimentText(WithAbsolutePaths(experiment_))));
  if (!machine.empty()) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(PathOf(kMachineFile), machine));
  }
  return WriteFileAtomically(PathOf(kPlanFile), plan);
}

Status RunLog::BeginFilling() {
  if (!writes_ || use_ != Use::kInference || std::exchange(filling_, true)) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(CheckInPlace());
  return WriteFileAtomically(PathOf(kUnfinishedFile), unfinished_);
}

// A run without a checkpoint begins anew and measures step 0 again.
StatusOr<std::string> RunLog::ReadKeptMetrics() {
  const std::string path = PathOf(kMetricsFile);
  if (step_ == 0) return std::string();
  ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(path));
  std::string text;
  if (there) {
    ELASTOR_ASSIGN_OR_RETURN(text, ReadFile(path));
  }
  KeptMetrics kept = KeepMetrics(text, step_);
  for (const int64_t line : kept.no_records) {
    ShowLine("warning: " + path + ": line " + std::to_string(line) +
             " is no record, and is left out");
  }
  if (!kept.reaches_checkpoint) {
    ShowLine("warning: " + path + ": ends before the checkpoint of step " + std::to_string(step_) +
             " was recorded; records of steps up to it may be missing");
  }
  return std::move(kept.text);
}

Status RunLog::CheckInPlace() const {
  if (!writes_) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const bool directory, folder_->IsInPlace());
  if (!directory) {
    return MachineError("--output_dir=" + output_dir_ +
                        ": was removed or moved while this run was writing there; expected it to "
                        "stay until the run ends");
  }
  if (metrics_ == nullptr) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const bool metrics, LeadsTo(PathOf(kMetricsFile), fileno(metrics_)));
  if (metrics) return OkStatus();
  return MachineError(PathOf(kMetricsFile) +
                      ": was removed or replaced while this run was writing it; expected it to "
                      "stay until the run ends");
}

Status RunLog::AppendRecord(const std::string& line) {
  ELASTOR_RETURN_IF_ERROR(CheckInPlace());
  ELASTOR_RETURN_IF_ERROR(AppendText(line + "\n", PathOf(kMetricsFile), metrics_));
  return AppendText(MetricsCsvLines(line), PathOf(kMetricsTableFile), table_);
}

bool RunLog::ProgressDue() { return writes_ && progress_clock_.Due(SecondsSince(start_)); }

void RunLog::ShowProgress(Progress progress) {
  if (!writes_) return;
  progress.elapsed_seconds = SecondsSince(start_);
  if (columns_ == 0) return ShowLine(ProgressLine(progress));
  // A bar as wide as the terminal would wrap in some of them.
  WriteToStderr(kEraseLine + ProgressBar(progress, columns_ - 1));
  bar_shown_ = true;
}

void RunLog::ShowLine(const std::string& line) {
  if (!writes_) return;
  EraseBar();
  WriteToStderr(WithoutControls(line) + "\n");
}

void RunLog::ShowFrequentLine(const std::string& line) {
  constexpr double kLeast = 0.2;
  const double now = SecondsSince(start_);
  if (now < next_frequent_line_) return;
  next_frequent_line_ = now + kLeast;
  ShowLine(line);
}

void RunLog::EraseBar() {
  if (bar_shown_) WriteToStderr(kEraseLine);
  bar_shown_ = false;
}

Status RunLog::Finish(const Summary& summary) {
  if (!writes_) return OkStatus();
  EraseBar();
  ELASTOR_RETURN_IF_ERROR(CheckInPlace());
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(PathOf(kSummaryFile), ToJson(summary)));
  if (filling_) ELASTOR_RETURN_IF_ERROR(RemoveFile(PathOf(kUnfinishedFile)));
  const Status told = WriteToStdout(ToText(summary));
  if (told.ok()) return told;
  return MachineError(told.message() + "; the run is whole, its results are in " +
                      PathOf(kSummaryFile));
}

}  // namespace elastor
