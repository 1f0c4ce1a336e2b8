#ifndef ELASTOR_TRAINER_RUN_RUN_LOG_H_
#define ELASTOR_TRAINER_RUN_RUN_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "trainer/run/run_records.h"

namespace elastor {

// The output directory of a run, and its progress on stderr. Only rank 0 writes; on other ranks
// every call does nothing and is ok. Errors are this rank's alone: agree on them before acting.
// Not thread-safe.
class RunLog {
 public:
  // What a directory that holds a run already means.
  enum class Used {
    kRefuse,  // a user error, so that two runs are never mixed
    // The run goes on: metrics.jsonl keeps the records up to `step`, a summary is removed. A user
    // error when it is finished and `step` is 0.
    kContinue,
  };
  // Makes the directory and writes experiment.textproto. User error when another process writes the
  // same run.
  static StatusOr<std::unique_ptr<RunLog>> Open(const std::string& output_dir,
                                                const Experiment& experiment, int rank, Used used,
                                                int64_t step);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // The shard plan's table, to plan.txt.
  Status WritePlan(const std::string& plan);

  // Appends a record of run_records.h to metrics.jsonl as one line, handed to the
  // system before this returns.
  template <typename Record>
  Status Append(const Record& record) {
    return writes_ ? AppendLine(ToJson(record)) : OkStatus();
  }

  // On a terminal a bar that redraws itself, in a file a line. total_steps: 0 when unknown.
  void ShowProgress(const TrainRecord& record, int64_t total_steps);
  // A line that a bar does not overwrite.
  void ShowLine(const std::string& line);

  // summary.json, and the same for people on stdout.
  Status Finish(const Summary& summary);

 private:
  RunLog(const std::string& output_dir, bool writes);
  Status OpenFiles(const Experiment& experiment, Used used, int64_t step);
  Status CheckUnused() const;
  Status ContinueAt(int64_t step);
  Status AppendLine(const std::string& line);
  void EraseBar();
  std::string PathOf(const char* name) const { return output_dir_ + "/" + name; }

  // Constant after construction.
  const std::string output_dir_;
  const bool writes_;
  const bool terminal_;
  const Clock::time_point start_;

  int lock_ = -1;                 // the directory, locked
  std::FILE* metrics_ = nullptr;  // owned
  bool bar_shown_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_RUN_LOG_H_
