#include "trainer/run_log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/file.h"
#include "trainer/config.h"
#include "trainer/progress.h"

namespace elastor {
namespace {

constexpr char kExperimentFile[] = "experiment.textproto";
constexpr char kMetricsFile[] = "metrics.jsonl";
constexpr char kPlanFile[] = "plan.txt";
constexpr char kSummaryFile[] = "summary.json";

// Returns to the start of the line and erases it.
constexpr char kEraseLine[] = "\r\033[K";

}  // namespace

StatusOr<std::unique_ptr<RunLog>> RunLog::Open(const std::string& output_dir,
                                               const Experiment& experiment, int rank) {
  std::unique_ptr<RunLog> log(new RunLog(output_dir, rank == 0));
  if (log->writes_) ELASTOR_RETURN_IF_ERROR(log->OpenFiles(experiment));
  return log;
}

RunLog::RunLog(const std::string& output_dir, bool writes)
    : output_dir_(output_dir),
      writes_(writes),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

RunLog::~RunLog() {
  if (bar_shown_) std::fputc('\n', stderr);
  if (metrics_ != nullptr) std::fclose(metrics_);
}

Status RunLog::OpenFiles(const Experiment& experiment) {
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(output_dir_));
  for (const char* name : {kExperimentFile, kSummaryFile}) {
    std::error_code ignored;
    if (std::filesystem::exists(PathOf(name), ignored)) {
      return UserError("--output_dir=" + output_dir_ + ": holds a run already (" + name +
                       "); expected a new or empty directory");
    }
  }
  // "x": of two runs started at once, one is refused.
  metrics_ = std::fopen(PathOf(kMetricsFile).c_str(), "wxe");
  if (metrics_ == nullptr && errno == EEXIST) {
    return UserError("--output_dir=" + output_dir_ + ": holds a run already (" + kMetricsFile +
                     "); expected a new or empty directory");
  }
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
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const ProgressState state = {total_steps, record.step, elapsed.count()};
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
