#ifndef ELASTOR_TRAINER_RUN_RUN_LOG_H_
#define ELASTOR_TRAINER_RUN_RUN_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/process/claimed_folder.h"
#include "trainer/records/record_json.h"
#include "trainer/run/progress.h"
#include "trainer/run/tensorboard.h"

namespace elastor {

// Writes the output directory of a run and shows its progress on stderr. Only rank 0 writes; on
// other ranks every call does nothing and is ok. Errors are this rank's alone: agree on them before
// acting. Not thread-safe.
class RunLog {
 public:
  // Purpose of the directory, which decides what it may hold.
  enum class Use {
    kTraining,  // new or empty
    // New, empty, or a run of the same experiment, which goes on after `step`. User error when that
    // run is finished and `step` is 0.
    kResumedTraining,
    kInference,  // new, empty, or what a death has left of the same command
  };
  // Claims the directory unless the caller has (`claimed`). Does not change its contents before
  // Begin. If destroyed before Begin, the log removes the directories that the claim made. User
  // error when the directory holds files that its purpose forbids, or when another process writes
  // into it. `command` tells inferences with the same experiment apart: mode, model and split.
  // REQUIRES: the experiment is resolved (experiment/config_defaults.h).
  static StatusOr<std::unique_ptr<RunLog>> Open(const std::string& output_dir,
                                                const Experiment& experiment, int rank, Use use,
                                                int64_t step,
                                                std::optional<ClaimedFolder> claimed = std::nullopt,
                                                const std::string& command = "");
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // Writes experiment.textproto and plan.txt, begins metrics.jsonl and metrics.csv, and removes an
  // old summary. A resumed run keeps the records up to its step. To be called once, after every
  // check that can refuse the command has passed. `plan` is the shard plan's table. With
  // `tensorboard`, records go into a TensorBoardFile, too. `machine` is the text of
  // parallel.machine, if the plan was chosen by it; machine.textproto keeps it.
  Status Begin(const std::string& plan, bool tensorboard = false, const std::string& machine = "");

  // Marks the directory, until Finish, as one that an inference is filling: after a death the same
  // command then takes it up. To be called before the first file is published there; Begin does so,
  // too. Later calls, and calls of other uses, do nothing.
  Status BeginFilling();

  // Checks that the directory, and metrics.jsonl in it, are still the ones that this process
  // opened. Machine error that names the missing one. To be called before anything is written
  // there: a writer makes missing directories, which would scatter results over two.
  Status CheckInPlace() const;

  // Appends a record of records/run_records.h to metrics.jsonl as one line, and to metrics.csv.
  // Hands them to the system before it returns. REQUIRES: Begin was ok.
  template <typename Record>
  Status Append(const Record& record) {
    if (!writes_) return OkStatus();
    ELASTOR_RETURN_IF_ERROR(AppendRecord(ToJson(record)));
    return tensorboard_ != nullptr ? tensorboard_->Append(record) : OkStatus();
  }

  // Returns whether it is time to show progress (ProgressClock). If so, progress counts as shown.
  bool ProgressDue();
  // Shows progress: on a terminal, also mpirun's, as a bar that redraws itself, elsewhere as a
  // line. Fills in elapsed_seconds.
  void ShowProgress(Progress progress);
  // Shows a line that a bar does not overwrite.
  void ShowLine(const std::string& line);
  // Shows at most five lines a second, for lines that may come thousands of times a second.
  void ShowFrequentLine(const std::string& line);

  // Writes summary.json, and prints the summary for people on stdout. REQUIRES: Begin was ok.
  Status Finish(const Summary& summary);

 private:
  RunLog(const std::string& output_dir, const Experiment& experiment, bool writes, Use use,
         int64_t step, const std::string& command);
  Status CheckContents() const;
  // Whether the directory holds what a death has left of the same inference. User error if of
  // another one.
  StatusOr<bool> HoldsOwnRemains(const std::set<std::string>& names) const;
  Status CheckRunToContinue() const;
  // Returns the lines of metrics.jsonl up to step_. Warns of lines that are no records and of
  // records that may be missing.
  StatusOr<std::string> ReadKeptMetrics();
  Status AppendRecord(const std::string& line);
  void EraseBar();
  std::string PathOf(const char* name) const { return output_dir_ + "/" + name; }

  // Constant after construction.
  const std::string output_dir_;
  const Experiment experiment_;
  const bool writes_;
  const Use use_;
  const int64_t step_;            // steps done before this process
  const std::string unfinished_;  // text of unfinished.txt
  const int columns_;             // width of the terminal; 0: there is none
  const Clock::time_point start_;

  std::optional<ClaimedFolder> folder_;           // on rank 0
  std::FILE* metrics_ = nullptr;                  // owned
  std::FILE* table_ = nullptr;                    // owned; metrics.csv
  std::unique_ptr<TensorBoardFile> tensorboard_;  // null: not wanted
  ProgressClock progress_clock_;
  bool bar_shown_ = false;
  double next_frequent_line_ = 0;  // seconds after start_
  bool filling_ = false;           // unfinished.txt is this process's
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_LOG_H_
