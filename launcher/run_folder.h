#ifndef ELASTOR_LAUNCHER_RUN_FOLDER_H_
#define ELASTOR_LAUNCHER_RUN_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// The files of a sweep and of its runs. They alone say how far a sweep is; no process is asked.
struct SweepFiles {
  std::string root;  // --output_dir

  std::string Runs() const { return root + "/runs"; }
  // The trainer's --output_dir.
  std::string Run(const std::string& folder) const { return Runs() + "/" + folder; }
  // The trainer's --experiment, written before the run starts.
  std::string Experiment(const std::string& folder) const {
    return root + "/experiments/" + folder + ".textproto";
  }
  // What trainer and mpirun print.
  std::string Log(const std::string& folder) const { return root + "/logs/" + folder + ".log"; }
  // A line for the start and one for the end of every attempt (Attempts).
  std::string Attempts(const std::string& folder) const {
    return root + "/attempts/" + folder + ".jsonl";
  }
  std::string Plan() const { return root + "/plan.jsonl"; }
  std::string Table() const { return root + "/runs.csv"; }
  // The sweep as it was last run, its base with all changes, readable by --sweep.
  std::string Sweep() const { return root + "/sweep.textproto"; }
  std::string Report() const { return root + "/report"; }
  std::string Lock() const { return root + "/launcher.lock"; }
  // What a launcher prints that works in the background.
  std::string LauncherLog() const { return root + "/launcher.log"; }
  // What went through Slurm: a list, a script and a log for each array (launcher/slurm_array.h).
  std::string Slurm() const { return root + "/slurm"; }
};

// What decides a run's bits, as 16 hex digits: its numeric fields that differ from their defaults,
// what its data set contains, where it stops, where it begins, the numerics of the build and the
// split that it leaves predictions of (empty: none). A field that a later version adds changes no
// hash while it has its default. REQUIRES: the experiment is resolved.
std::string RunHash(const Experiment& experiment, const std::string& data_fingerprint,
                    const std::string& numerics, const std::string& predictions = "");

// "label_label-HASH", of letters that need no quotes; labels beyond some length are cut.
std::string FolderName(const std::vector<std::string>& labels, const std::string& hash);
std::string HashOfFolder(const std::string& folder);  // empty: is no run's name
// "label_label"
std::string LabelsOfFolder(const std::string& folder);

// Of a finished run: what its summary.json says.
struct RunResult {
  std::optional<double> auc, logloss, gauc;
  int64_t rows = 0, steps = 0;
  double samples_per_s = 0, wall_s = 0;
  int64_t peak_memory_bytes = 0;  // of rank 0
  std::string state_digest;
};
// Nothing when the run has no whole summary.
std::optional<RunResult> ReadResult(const std::string& run_directory);

// How far a run that is not finished is, by its metrics.jsonl.
struct RunProgress {
  int64_t step = 0;
  double samples_per_s = 0;                      // of the last training record
  std::optional<double> auc = {}, logloss = {};  // of the last evaluation
};

// Follows a run: reads its metrics.jsonl from the end, and the next time only what was appended.
class ProgressReader {
 public:
  explicit ProgressReader(const std::string& run_directory)
      : path_(run_directory + "/metrics.jsonl") {}

  // As of now. A file that was replaced, as by a run that goes on, is read anew.
  const RunProgress& Read();

 private:
  const std::string path_;
  RunProgress progress_;
  uint64_t inode_ = 0;
  int64_t read_bytes_ = 0;  // to the end of a line
};

// What has been tried of a run.
struct Attempts {
  int started = 0;
  bool open = false;  // the last one has not ended, as far as its launcher could tell
  // Ended with 75, but not by the launcher's own signal or a rehearsal, or lost in Slurm.
  int stopped = 0;
  int machine = 0;             // ended for a reason that another attempt may not meet
  int rehearsed = 0;           // ended with 75 because of a rehearsal
  int exit_code = 0;           // of the last one that ended; 128 + n: by signal n
  std::string last_line = {};  // of its output
  std::string slurm = {};      // Place::slurm of the last one that started
};
Attempts ReadAttempts(const std::string& path);

// Where an attempt runs.
struct Place {
  std::vector<int> cores = {}, gpus = {};  // of this machine; no cores: all the launcher has
  // "12_3 restart 1 on node[1-2]": the element of a job array, how often Slurm has requeued it, its
  // nodes. Empty: not through Slurm.
  std::string slurm = {};
};

// One line of the attempts' file, appended: the start, that the attempt is about to be stopped by a
// rehearsal (rehearsal.h), the end, that the user cancelled the run's job, and that failures until
// now count no more (--retry_failed).
Status AppendStart(const std::string& path, int pid, const Place& place);
Status AppendRehearsal(const std::string& path);
Status AppendEnd(const std::string& path, int exit_code, bool stopped_by_launcher, double seconds,
                 const std::string& last_line);
Status AppendCancelled(const std::string& path);
Status AppendForgiveness(const std::string& path);

// Whether a run is to be tried again after an end (EndOf of core/process/job_process.h,
// docs/use/sweeps.md):
//   stopped; in Slurm: lost with its node or preempted    up to kMostStops times, those of
//     rehearsals not counted
//   a machine's failure, 0 without a summary    up to kMostMachineFailures times
//   final                    never
//   its job was cancelled    never, by itself
inline constexpr int kMostStops = 20;
inline constexpr int kMostMachineFailures = 2;
inline constexpr int kCancelled = -1;  // in place of an exit code
bool MayTryAgain(const Attempts& attempts);
// CauseOf of core/process/job_process.h, and of kCancelled.
std::string CauseOfAttempt(int exit_code);

enum class RunState { kWaiting, kCutOff, kDone, kFailed };
RunState StateOf(const Attempts& attempts, bool has_result);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RUN_FOLDER_H_
