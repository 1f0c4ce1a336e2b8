#ifndef ELASTOR_TRAINER_RUN_RUN_LOG_H_
#define ELASTOR_TRAINER_RUN_RUN_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "trainer/run/progress.h"
#include "trainer/run/run_records.h"
#include "trainer/run/tensorboard.h"

namespace elastor {

// The output directory of a run, and its progress on stderr. Only rank 0 writes; on other ranks
// every call does nothing and is ok. Errors are this rank's alone: agree on them before acting.
// Not thread-safe.
class RunLog {
 public:
  // What the directory is for, hence what it may hold.
  enum class Use {
    kTraining,  // new or empty
    // New, empty, or a run of the same experiment, which goes on after `step`. User error when that
    // run is finished and `step` is 0.
    kResumedTraining,
    kInference,  // new or empty
  };
  // Claims the directory: makes it, with its parents, where it is missing, and locks it. What it
  // holds stays untouched until Begin; destroyed before Begin, this removes the directories that it
  // made, so that a refused command leaves nothing behind. User error when the directory holds what
  // it may not, or when another process writes into it. REQUIRES: the experiment is resolved
  // (experiment/config_defaults.h).
  static StatusOr<std::unique_ptr<RunLog>> Open(const std::string& output_dir,
                                                const Experiment& experiment, int rank, Use use,
                                                int64_t step);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // Writes experiment.textproto and plan.txt and begins metrics.jsonl and metrics.csv, of a resumed
  // run after the records up to its step; a summary is removed. To be called once, when nothing is
  // left that can be refused. `plan`: the shard plan's table. tensorboard: records go into a
  // TensorBoardFile, too.
  Status Begin(const std::string& plan, bool tensorboard = false);

  // Whether the directory, and metrics.jsonl in it, are still the ones that this process opened;
  // else a machine error that names what is gone. To be called before anything is written there:
  // whoever writes makes missing directories, and results would be scattered over two.
  Status CheckInPlace() const;

  // Appends a record of run_records.h to metrics.jsonl as one line, and to metrics.csv, handed to
  // the system before this returns. REQUIRES: Begin was ok.
  template <typename Record>
  Status Append(const Record& record) {
    if (!writes_) return OkStatus();
    ELASTOR_RETURN_IF_ERROR(AppendRecord(ToJson(record)));
    return tensorboard_ != nullptr ? tensorboard_->Append(record) : OkStatus();
  }

  // Whether it is time to show progress (ProgressClock); it then counts as shown.
  bool ProgressDue();
  // On a terminal, also mpirun's, a bar that redraws itself, elsewhere a line. Fills in where the
  // process began and how long it has been at work.
  void ShowProgress(Progress progress);
  // A line that a bar does not overwrite.
  void ShowLine(const std::string& line);
  // The same, of lines of which there may be thousands a second: five a second are shown.
  void ShowFrequentLine(const std::string& line);

  // summary.json, and the same for people on stdout. REQUIRES: Begin was ok.
  Status Finish(const Summary& summary);

 private:
  RunLog(const std::string& output_dir, const Experiment& experiment, bool writes, Use use,
         int64_t step);
  Status Claim();
  Status CheckContents() const;
  Status CheckRunToContinue() const;
  // The lines of metrics.jsonl up to step_. Warns of those that are none, or may be missing.
  StatusOr<std::string> ReadKeptMetrics();
  Status AppendRecord(const std::string& line);
  void EraseBar();
  std::string PathOf(const char* name) const { return output_dir_ + "/" + name; }

  // Constant after construction.
  const std::string output_dir_;
  const Experiment experiment_;
  const bool writes_;
  const Use use_;
  const int64_t step_;  // done before this process
  const int columns_;   // of the terminal; 0: none
  const Clock::time_point start_;

  std::vector<std::string> made_;  // directories that were missing, parents first
  int lock_ = -1;                  // the directory, locked
  bool begun_ = false;
  std::FILE* metrics_ = nullptr;                  // owned
  std::FILE* table_ = nullptr;                    // owned; metrics.csv
  std::unique_ptr<TensorBoardFile> tensorboard_;  // null: not wanted
  ProgressClock progress_clock_;
  bool bar_shown_ = false;
  double next_frequent_line_ = 0;  // seconds after start_
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_LOG_H_
