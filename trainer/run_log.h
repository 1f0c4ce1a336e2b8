#ifndef ELASTOR_TRAINER_RUN_LOG_H_
#define ELASTOR_TRAINER_RUN_LOG_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/run_records.h"

namespace elastor {

// The output directory of a run, and its progress on stderr. Only rank 0 writes; on other ranks
// every call does nothing and is ok. Errors are this rank's alone: agree on them before acting.
// Not thread-safe.
class RunLog {
 public:
  // Makes the directory and writes experiment.textproto. User error when the directory holds a run
  // already, so that two runs are never mixed.
  static StatusOr<std::unique_ptr<RunLog>> Open(const std::string& output_dir,
                                                const Experiment& experiment, int rank);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // The shard plan's table, to plan.txt.
  Status WritePlan(const std::string& plan);

  // Appends a TrainRecord, EvalRecord or SpectrumRecord to metrics.jsonl as one line, handed to the
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
  Status OpenFiles(const Experiment& experiment);
  Status AppendLine(const std::string& line);
  void EraseBar();
  std::string PathOf(const char* name) const { return output_dir_ + "/" + name; }

  // Constant after construction.
  const std::string output_dir_;
  const bool writes_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;

  std::FILE* metrics_ = nullptr;  // owned
  bool bar_shown_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_LOG_H_
