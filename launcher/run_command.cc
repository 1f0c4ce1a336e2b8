#include "launcher/run_command.h"

#include "core/base/text.h"
#include "core/process/job_process.h"

namespace elastor {
namespace {

std::string Gigabytes(int64_t bytes) { return Format("%.3g GB", static_cast<double>(bytes) / 1e9); }

}  // namespace

std::string Misfit(const PlannedRun& run, const Machine& machine) {
  if (run.nodes > 1) {
    return StrCat("needs ", run.nodes, " nodes; expected resources.nodes=1, or --scheduler=slurm");
  }
  const auto cores = static_cast<int>(machine.cores.size());
  if (run.cores() > cores) {
    return StrCat("needs ", run.cores(), " cores (", run.ranks, " ranks of ", run.threads,
                  " threads), host ", machine.host, " gives ", cores);
  }
  const auto gpus = static_cast<int>(machine.gpus.size());
  if (run.all_gpus() > gpus) {
    return StrCat("needs ", run.all_gpus(), " GPUs, host ", machine.host, " gives ", gpus);
  }
  if (run.bytes() > machine.memory_bytes) {
    return "needs at least " + Gigabytes(run.bytes()) + " of memory, host " + machine.host +
           " has " + Gigabytes(machine.memory_bytes);
  }
  return "";
}

std::vector<std::string> TrainerCommand(const PlannedRun& run, const SweepFiles& files,
                                        const std::string& trainer) {
  std::vector<std::string> command = {trainer, "--experiment=" + files.Experiment(run.folder),
                                      "--output_dir=" + files.Run(run.folder)};
  if (run.gpus > 0) command.push_back("--device=cuda");
  command.push_back("--tensorboard");
  if (!run.predictions.empty()) {
    command.push_back("--split=" + run.predictions);
    command.push_back("--predictions");
  }
  return command;
}

std::vector<std::string> LocalCommand(const PlannedRun& run, const SweepFiles& files,
                                      const std::string& trainer) {
  std::vector<std::string> command = TrainerCommand(run, files, trainer);
  if (run.ranks == 1) return command;
  // The run's cores are those of the process's affinity, which the ranks inherit. Ranks that
  // outlived an mpirun that is killed would hold the run's folder.
  command = EndingWithItsParent(command);
  std::vector<std::string> mpirun = QuietMpirun();
  mpirun.insert(mpirun.end(),
                {"-np", std::to_string(run.ranks), "--oversubscribe", "--bind-to", "none"});
  command.insert(command.begin(), mpirun.begin(), mpirun.end());
  return command;
}

}  // namespace elastor
