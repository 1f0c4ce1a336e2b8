// The trainer's process: flags in, a mode found and run, exit code out (docs/use/command_line.md).
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/exhausted.h"
#include "core/base/log.h"
#include "core/base/numerics.h"
#include "core/base/status.h"
#include "core/process/standard_streams.h"
#include "core/process/stop_signals.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/invocation.h"
#include "trainer/modes/mode.h"
#include "trainer/modes/supervision.h"
#include "trainer/run/backend.h"
#include "trainer/run/start_agreement.h"

namespace elastor {
namespace {

// A user error or a divergence is agreed on: all ranks return the same status, in step, so that
// they can leave in order. A machine error may be one rank's alone; the job then ends without
// another collective.
Status Run(const StatusOr<Invocation>& invocation, Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(AgreeOnProgram(communicator));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, invocation.status()));
  const std::string& help = invocation.value().help;
  ELASTOR_RETURN_IF_ERROR(AgreeOnText(communicator, "--help", help.substr(0, help.find('\n'))));
  ELASTOR_RETURN_IF_ERROR(AgreeOnFlags(communicator));
  if (!help.empty()) return PrintOnce(help, communicator);
  const Mode& mode = *invocation.value().mode;
  ModeCall call = invocation.value().call;
  RunOptions& options = call.options;
  ELASTOR_RETURN_IF_ERROR(AgreeOnExperiment(options.experiment, communicator));
  std::string device = "cpu";
  const bool computes = mode.source == Mode::Source::kDataSet;
  if (computes) {
    ELASTOR_ASSIGN_OR_RETURN(device, options.device == RunDevice::kCuda
                                         ? OpenCudaDevice(communicator)
                                         : OpenCpu(options.experiment, communicator));
  }
  options.numerics = NumericsFingerprint(device);
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnText(communicator, "the numerics fingerprint", WithoutMachine(options.numerics)));
  ELASTOR_RETURN_IF_ERROR(AgreeOnGoingOn(communicator));
  // Until a training run has made its first step there is nothing to save.
  ExitOnStopSignals(/*speaks=*/communicator.rank() == 0,
                    /*speaks_of_sigterm=*/!options.trains() || communicator.size() == 1);
  if (computes) ELASTOR_RETURN_IF_ERROR(ValidateRanks(options.experiment, communicator.size()));
  return mode.run(call, communicator);
}

void PrintError(const Status& status) { WriteToStderr("trainer: " + status.message() + "\n"); }

int Main(int argc, char** argv) {
  RaiseStackLimit();
  RememberStopSignals();
  PrepareStandardStreams();
  // Quiet unless something is wrong; --minloglevel=0 tells more.
  StartLog(argv[0]);

  // Ranks leave in order, once MPI is there.
  if (!IsStartedByMpi()) ExitOnStopSignals(/*speaks=*/true);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const StatusOr<Invocation> invocation = ReadInvocation(arguments);
  if (invocation.ok() && invocation->help.empty() && FLAGS_supervise) {
    const StatusOr<int> exit_code =
        SuperviseJob(invocation->hosts, invocation->call.options.experiment.parallel(), arguments);
    if (exit_code.ok()) return *exit_code;
    PrintError(exit_code.status());
    return static_cast<int>(exit_code.status().code());
  }
  CommunicatorOptions communicator_options;
  communicator_options.terminated = Terminated;
  if (invocation.ok() && invocation->help.empty()) {
    const ParallelConfig& parallel = invocation->call.options.experiment.parallel();
    communicator_options.start_seconds = parallel.start_seconds();
    communicator_options.deadline_seconds = parallel.deadline_seconds();
    communicator_options.watchdog_seconds = parallel.watchdog_seconds();
  }
  StatusOr<std::unique_ptr<Communicator>> world = MakeWorldCommunicator(communicator_options);
  if (!world.ok()) {
    PrintError(world.status());
    return static_cast<int>(world.status().code());
  }
  Communicator& communicator = **world;

  const Status status = Run(invocation, communicator);
  // All ranks return an agreed status; of others the peers may be gone.
  const bool alone = status.code() == StatusCode::kMachine && !status.agreed();
  if (!status.ok() && (alone || communicator.rank() == 0)) PrintError(status);
  // The outcome stands: a launcher that ends the last ranks because the first have left changes it
  // no more.
  RememberStopSignals();
  const int exit_code = static_cast<int>(status.code());
  if (status.ok()) return exit_code;
  if (alone) {
    // No collective call any more, MPI_Finalize included. The launcher ends the rest of the job.
    communicator.Abandon();
    _exit(exit_code);
  }
  // Nobody leaves before it is told.
  const Status left = communicator.Barrier(Phase::kSetup);
  if (!left.ok()) _exit(exit_code);
  return exit_code;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) { return elastor::Main(argc, argv); }
