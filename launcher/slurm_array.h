#ifndef ELASTOR_LAUNCHER_SLURM_ARRAY_H_
#define ELASTOR_LAUNCHER_SLURM_ARRAY_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// A sweep's job arrays, by their files in SweepFiles::Slurm():
//   array-N.jsonl       the runs of its elements, a line each: {"folder": ..., "command": [...]},
//                       whole before the array is submitted. Once nothing is expected of the array
//                       any more it is array-N.over.jsonl, and an element that comes late ends.
//   array-N.sh          the batch script: becomes the launcher with --element=N
//   array-N.job         Slurm's id, from when the launcher knows it
//   array-N.log         what the elements' launchers print
//   advance.sh, .log    of the job that waits for all arrays

// Groups the runs that need the same resources, and cuts the groups into arrays of at most
// `most_elements`. In a group the most expensive runs come first.
std::vector<std::vector<const PlannedRun*>> GroupIntoArrays(std::vector<const PlannedRun*> runs,
                                                            int most_elements);

// Returns the name of all jobs of the sweep in this folder: "elastor-HASH".
std::string JobName(const SweepFiles& files);
std::string ArrayScript(const SweepFiles& files, int number);
std::string AdvanceScript(const SweepFiles& files);

// Checks the sweep's Slurm settings. User error in one line for a setting that no job can have.
Status CheckSlurm(const Sweep& sweep);

// Returns the command that starts the trainer's ranks inside a job.
std::vector<std::string> JobCommand(const PlannedRun& run, const SweepFiles& files,
                                    const std::string& trainer, const Slurm& slurm);

// Returns the arguments of sbatch. REQUIRES: all runs of an array need the same resources.
std::vector<std::string> ArrayArguments(std::span<const PlannedRun* const> runs, int number,
                                        const SweepFiles& files, const Slurm& slurm);
// `after` holds the ids of jobs that must have ended, whether they succeeded or failed.
std::vector<std::string> AdvanceArguments(const std::vector<std::string>& after, int minutes,
                                          const SweepFiles& files, const Slurm& slurm);

// Writes a batch script that becomes `command` after the setup's lines.
Status WriteScript(const std::string& path, const std::vector<std::string>& command,
                   const Slurm& slurm);
Status WriteArray(std::span<const PlannedRun* const> runs, int number, const SweepFiles& files,
                  const std::string& trainer, const Slurm& slurm);

struct ArrayElement {
  std::string folder;
  std::vector<std::string> command;
};
// An array whose elements may still run.
struct OpenArray {
  int number = 0;
  std::string job = {};  // Slurm's id; empty: not known
  std::vector<std::string> folders = {};
};
StatusOr<std::vector<OpenArray>> ReadOpenArrays(const SweepFiles& files);  // by number
StatusOr<int> NextArrayNumber(const SweepFiles& files);
Status RecordJob(const SweepFiles& files, int number, const std::string& job);
Status CloseArray(const SweepFiles& files, int number);
// Reads an element; none if the array is over. User error when there is no such element.
StatusOr<std::optional<ArrayElement>> ReadElement(const SweepFiles& files, int number, int element);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SLURM_ARRAY_H_
