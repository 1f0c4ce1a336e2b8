#ifndef ELASTOR_LAUNCHER_RUN_FOLDER_H_
#define ELASTOR_LAUNCHER_RUN_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/records/run_records.h"

namespace elastor {

// The files of a sweep and of its runs. They alone say how far a sweep is; no process is asked.
struct SweepFiles {
  std::string root;  // --output_dir

  std::string Runs() const { return root + "/runs"; }
  // Returns the trainer's --output_dir.
  std::string Run(const std::string& folder) const { return Runs() + "/" + folder; }
  // Returns the trainer's --experiment, which is written before the run starts.
  std::string Experiment(const std::string& folder) const {
    return root + "/experiments/" + folder + ".textproto";
  }
  // Returns the file for the output of trainer and mpirun.
  std::string Log(const std::string& folder) const { return root + "/logs/" + folder + ".log"; }
  // Returns the attempts' file, with one line for the start and one for the end of every attempt.
  std::string Attempts(const std::string& folder) const {
    return root + "/attempts/" + folder + ".jsonl";
  }
  std::string Plan() const { return root + "/plan.jsonl"; }
  std::string Table() const { return root + "/runs.csv"; }
  // Returns the file of the sweep as it was last run, its base with all changes. --sweep can read
  // it.
  std::string Sweep() const { return root + "/sweep.textproto"; }
  std::string Report() const { return root + "/report"; }
  std::string Lock() const { return root + "/launcher.lock"; }
  // Returns the file for the output of a launcher in the background.
  std::string LauncherLog() const { return root + "/launcher.log"; }
  // Returns the folder of the sweep's Slurm arrays, with a list, a script and a log for each
  // (launcher/slurm_array.h).
  std::string Slurm() const { return root + "/slurm"; }
};

// Returns a hash, as 16 hex digits, of everything that decides a run's bits: its numeric fields
// that differ from their defaults, the contents of its data set, its first and last step, the
// build's numerics and the split that it predicts (empty: none). A field that a later version adds
// changes no hash while it has its default. REQUIRES: the experiment is resolved.
std::string RunHash(const Experiment& experiment, const std::string& data_fingerprint,
                    const std::string& numerics, const std::string& predictions = "");

// Returns "label_label-HASH", in letters that need no quotes. Long labels are cut.
std::string FolderName(const std::vector<std::string>& labels, const std::string& hash);
std::string HashOfFolder(const std::string& folder);  // empty: is no run's name
// "label_label"
std::string LabelsOfFolder(const std::string& folder);

// Returns the results of the run in a sweep's folder; none unless it has a whole summary. Times
// that it lacks are 0. User error, in one line, if the folder holds the files of another run: the
// experiment in it differs from the sweep's in a numeric field, or the summary is of another
// experiment by its numeric_hash.
StatusOr<std::optional<Summary>> ReadOwnResult(const SweepFiles& files, const std::string& folder);
// Does the same, but a folder of another run has no result.
std::optional<Summary> ReadResult(const SweepFiles& files, const std::string& folder);

// Summary of a run's attempts.
struct Attempts {
  int started = 0;
  bool open = false;  // the last one has not ended, as far as its launcher could tell
  // Number of attempts that ended with 75, except by the launcher's own signal or a rehearsal, or
  // that were lost in Slurm.
  int stopped = 0;
  int machine = 0;             // number that ended for a reason that another attempt may not meet
  int rehearsed = 0;           // number that ended with 75 because of a rehearsal
  int exit_code = 0;           // exit code of the last attempt that ended; 128 + n: by signal n
  std::string last_line = {};  // last line of its output
  std::string slurm = {};      // Place::slurm of the last attempt that started
};
Attempts ReadAttempts(const std::string& path);

// Place where an attempt runs.
struct Place {
  std::vector<int> cores = {}, gpus = {};  // of this machine; no cores: all the launcher has
  // The element of a job array, how often Slurm has requeued it, and its nodes: "12_3 restart 1 on
  // node[1-2]". Empty: not through Slurm.
  std::string slurm = {};
};

// Each appends one line to the attempts' file. The line records the start; that a rehearsal is
// about to stop the attempt (rehearsal.h); the end; that the user cancelled the run's job; or that
// earlier failures no longer count (--retry_failed).
Status AppendStart(const std::string& path, int pid, const Place& place);
Status AppendRehearsal(const std::string& path);
Status AppendEnd(const std::string& path, int exit_code, bool stopped_by_launcher, double seconds,
                 const std::string& last_line);
Status AppendCancelled(const std::string& path);
Status AppendForgiveness(const std::string& path);

// Exit codes of an attempt.
inline constexpr int kMistakeCode = static_cast<int>(StatusCode::kUser);
inline constexpr int kMachineCode = static_cast<int>(StatusCode::kMachine);
inline constexpr int kDivergedCode = static_cast<int>(StatusCode::kDiverged);
inline constexpr int kStoppedCode = static_cast<int>(StatusCode::kStopped);

// Returns whether a run may be tried again after an end (EndOf in core/process/job_process.h,
// docs/use/sweeps.md):
//   stopped, or in Slurm lost with its node or preempted: up to kMostStops times; stops by
//     rehearsals do not count
//   a machine's failure, or exit code 0 without a summary: up to kMostMachineFailures times
//   a final end: never
//   its job was cancelled: never without the user's command
inline constexpr int kMostStops = 20;
inline constexpr int kMostMachineFailures = 2;
inline constexpr int kCancelled = -1;  // in place of an exit code
bool MayTryAgain(const Attempts& attempts);
// Returns the cause of an attempt's end for people: like CauseOf (core/process/job_process.h), and
// also defined for kCancelled.
std::string CauseOfAttempt(int exit_code);

enum class RunState { kWaiting, kCutOff, kDone, kFailed };
RunState StateOf(const Attempts& attempts, bool has_result);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RUN_FOLDER_H_
