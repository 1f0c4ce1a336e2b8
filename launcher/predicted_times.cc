#include "launcher/predicted_times.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/process/job_process.h"
#include "trainer/experiment/config.h"

namespace elastor {
namespace {

// A file in memory that other processes can open while this object lives.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("launcher", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (file_ >= 0) close(file_);
  }
  int file() const { return file_; }
  std::string path() const { return StrCat("/proc/", getpid(), "/fd/", file_); }

 private:
  const int file_;
};

// Runs a command to its end. Returns its exit code.
StatusOr<int> ExitCodeOfCommand(const std::vector<std::string>& command,
                                const ProcessStreams& streams) {
  const sigset_t waited = WaitedSignals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &waited, &before);
  const StatusOr<pid_t> child = StartProcess(command, streams, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  ELASTOR_RETURN_IF_ERROR(child.status());
  int status = 0;
  while (waitpid(*child, &status, 0) < 0) {
    if (errno != EINTR) return MachineError(std::string("waitpid: ") + std::strerror(errno));
  }
  return ExitCodeOf(status);
}

}  // namespace

Status PredictedTimes::Add(Plan* plan) {
  for (PlannedRun& run : plan->runs) ELASTOR_RETURN_IF_ERROR(Add(&run));
  for (LaterRuns& later : plan->later) ELASTOR_RETURN_IF_ERROR(Add(&later.each));
  return OkStatus();
}

Status PredictedTimes::Add(PlannedRun* run) {
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ParseExperiment(run->experiment, run->folder));
  if (experiment.parallel().machine().empty()) return OkStatus();
  // Many runs differ in these alone.
  experiment.clear_name();
  experiment.mutable_training()->clear_max_steps();
  experiment.mutable_training()->set_seed(1);
  experiment.mutable_optimizer()->set_learning_rate(1);
  const std::string text = ExperimentText(experiment);
  const std::string key = StrCat(run->ranks, " ", run->nodes, "\n", text);
  if (const auto known = known_.find(key); known != known_.end()) {
    run->predicted_sample_s = known->second;
    return OkStatus();
  }
  const MemoryFile input, output, error;
  if (output.file() < 0 || error.file() < 0 ||
      write(input.file(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return MachineError(std::string("memfd: ") + std::strerror(errno));
  }
  ELASTOR_ASSIGN_OR_RETURN(
      const int code,
      ExitCodeOfCommand(
          {trainer_, "--mode=describe", "--experiment=" + input.path(),
           StrCat("--ranks=", run->ranks), StrCat("--ranks_per_host=", run->ranks / run->nodes)},
          {output.file(), error.file()}));
  ELASTOR_ASSIGN_OR_RETURN(const std::string told, ReadFile((code == 0 ? output : error).path()));
  if (code != 0) {
    constexpr std::string_view kName = "trainer: ";
    const std::string line = told.substr(0, told.find('\n'));
    return UserError("parallel.machine: " +
                     line.substr(line.starts_with(kName) ? kName.size() : 0));
  }
  const Json json = Json::parse(told);
  const Json* const prediction = json.find("prediction");
  if (prediction == nullptr) return UserError("--trainer=" + trainer_ + ": predicts no times");
  run->predicted_sample_s = known_[key] = 1 / prediction->at("samples_per_s").get<double>();
  return OkStatus();
}

}  // namespace elastor
