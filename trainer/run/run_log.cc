#include "trainer/run/run_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/base/file.h"
#include "nlohmann/json.hpp"
#include "trainer/experiment/config.h"
#include "trainer/run/progress.h"

namespace elastor {
namespace {

constexpr char kExperimentFile[] = "experiment.textproto";
constexpr char kMetricsFile[] = "metrics.jsonl";
constexpr char kPlanFile[] = "plan.txt";
constexpr char kSummaryFile[] = "summary.json";
// Written by others, but of the run.
constexpr char kModelDirectory[] = "model";
constexpr char kCheckpointsDirectory[] = "checkpoints";

// Returns to the start of the line and erases it.
constexpr char kEraseLine[] = "\r\033[K";

}  // namespace

StatusOr<std::unique_ptr<RunLog>> RunLog::Open(const std::string& output_dir,
                                               const Experiment& experiment, int rank, Used used,
                                               int64_t step) {
  std::unique_ptr<RunLog> log(new RunLog(output_dir, rank == 0));
  if (log->writes_) ELASTOR_RETURN_IF_ERROR(log->OpenFiles(experiment, used, step));
  return log;
}

RunLog::RunLog(const std::string& output_dir, bool writes)
    : output_dir_(output_dir),
      writes_(writes),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()) {}

RunLog::~RunLog() {
  if (bar_shown_) std::fputc('\n', stderr);
  if (metrics_ != nullptr) std::fclose(metrics_);
  if (lock_ >= 0) close(lock_);
}

Status RunLog::CheckUnused() const {
  for (const char* name :
       {kExperimentFile, kSummaryFile, kMetricsFile, kModelDirectory, kCheckpointsDirectory}) {
    std::error_code ignored;
    if (std::filesystem::exists(PathOf(name), ignored)) {
      return UserError("--output_dir=" + output_dir_ + ": holds a run already (" + name +
                       "); expected a new or empty directory, or --resume to continue the run");
    }
  }
  return OkStatus();
}

// Every record has a step; a line that a killed run left unfinished has none. The summary goes: the
// run is not finished.
Status RunLog::ContinueAt(int64_t step) {
  std::error_code ignored;
  if (step == 0 && std::filesystem::exists(PathOf(kSummaryFile), ignored)) {
    return UserError("--output_dir=" + output_dir_ +
                     ": holds a finished run without checkpoints (" + kSummaryFile +
                     "); expected a run that --resume can continue, or a new directory without it");
  }
  std::filesystem::remove(PathOf(kSummaryFile), ignored);
  const std::string path = PathOf(kMetricsFile);
  if (!std::filesystem::exists(path, ignored)) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.value("step", step + 1) <= step) kept += line + "\n";
  }
  return WriteFileAtomically(path, kept);
}

Status RunLog::OpenFiles(const Experiment& experiment, Used used, int64_t step) {
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(output_dir_));
  lock_ = open(output_dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return UserError("--output_dir=" + output_dir_ + ": another process is writing this run");
  }
  ELASTOR_RETURN_IF_ERROR(used == Used::kRefuse ? CheckUnused() : ContinueAt(step));
  // "x": of two runs started at once, one is refused, also on a file system without locks.
  metrics_ = std::fopen(PathOf(kMetricsFile).c_str(), used == Used::kRefuse ? "wxe" : "ae");
  if (metrics_ == nullptr && errno == EEXIST) return CheckUnused();
  if (metrics_ == nullptr) {
    return UserError(PathOf(kMetricsFile) + ": cannot create: " + std::strerror(errno));
  }
  return WriteFileAtomically(PathOf(kExperimentFile), ExperimentText(experiment));
}

Status RunLog::WritePlan(const std::string& plan) {
  return writes_ ? WriteFileAtomically(PathOf(kPlanFile), plan) : OkStatus();
}

Status RunLog::AppendLine(const std::string& line) {
  std::fputs(line.c_str(), metrics_);
  std::fputc('\n', metrics_);
  if (std::fflush(metrics_) == 0 && std::ferror(metrics_) == 0) return OkStatus();
  return MachineError(PathOf(kMetricsFile) + ": cannot write: " + std::strerror(errno));
}

void RunLog::ShowProgress(const TrainRecord& record, int64_t total_steps) {
  if (!writes_) return;
  const ProgressState state = {total_steps, record.step, SecondsSince(start_)};
  if (!terminal_) return ShowLine(ProgressLine(record, state));
  std::fputs((kEraseLine + ProgressBar(record, state)).c_str(), stderr);
  std::fflush(stderr);
  bar_shown_ = true;
}

void RunLog::ShowLine(const std::string& line) {
  if (!writes_) return;
  EraseBar();
  std::fputs((line + "\n").c_str(), stderr);
}

void RunLog::EraseBar() {
  if (bar_shown_) std::fputs(kEraseLine, stderr);
  bar_shown_ = false;
}

Status RunLog::Finish(const Summary& summary) {
  if (!writes_) return OkStatus();
  EraseBar();
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(PathOf(kSummaryFile), ToJson(summary)));
  std::fputs(ToText(summary).c_str(), stdout);
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace elastor
