#ifndef ELASTOR_TRAINER_RECORDS_PROGRESS_READER_H_
#define ELASTOR_TRAINER_RECORDS_PROGRESS_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/records/run_files.h"

namespace elastor {

// Progress of an unfinished run, by its metrics.jsonl.
struct RunProgress {
  int64_t step = 0;                              // of the last record
  double samples_per_s = 0;                      // throughput in the last training record
  std::optional<double> auc = {}, logloss = {};  // of the last evaluation
};

// Follows a run. Reads its metrics.jsonl from the end, and later only the lines that were appended.
// Passes over lines that are no records: who follows a run judges nothing.
class ProgressReader {
 public:
  explicit ProgressReader(const std::string& run_folder) : path_(run_folder + "/" + kMetricsFile) {}

  // Returns the progress as of now. Reads a replaced file anew; a run that goes on replaces it.
  const RunProgress& Read();

 private:
  const std::string path_;
  RunProgress progress_;
  uint64_t inode_ = 0;
  int64_t read_bytes_ = 0;  // bytes read so far, up to the end of a line
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_PROGRESS_READER_H_
