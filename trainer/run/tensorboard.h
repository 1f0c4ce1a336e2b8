#ifndef ELASTOR_TRAINER_RUN_TENSORBOARD_H_
#define ELASTOR_TRAINER_RUN_TENSORBOARD_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "trainer/records/ntk_record.h"
#include "trainer/records/run_records.h"
#include "trainer/run/tensorboard_event.pb.h"

namespace elastor {

// Writes the records of a run for TensorBoard, beside metrics.jsonl, as scalars and histograms.
// Their tags are listed in docs/use/outputs.md ("TensorBoard"). The file is a sequence of
// TFRecords: the length of an event in 8 bytes, a checksum of these, the event, a checksum of it;
// all little-endian. Errors are machine errors that name the file. Not thread-safe.
class TensorBoardFile {
 public:
  // Makes a file in the directory whose name sorts after the files of the run's earlier processes.
  // first_step is the first step of this process's events; TensorBoard then drops events of earlier
  // files at this step or later.
  // settings: names and texts that HParams shows beside the metrics.
  static StatusOr<std::unique_ptr<TensorBoardFile>> Create(
      const std::string& directory, int64_t first_step,
      const std::map<std::string, std::string>& settings);
  ~TensorBoardFile() { std::fclose(file_); }
  TensorBoardFile(const TensorBoardFile&) = delete;
  TensorBoardFile& operator=(const TensorBoardFile&) = delete;

  // Append one event, and hand it to the system before they return.
  Status Append(const TrainRecord& record);
  Status Append(const EvalRecord& record);
  Status Append(const SpectrumRecord& record);
  Status Append(const ScoringRecord& record);
  Status Append(const TableRecord& record);
  Status Append(const NtkRecord& record);
  // TensorBoard shows nothing of checkpoints.
  Status Append(const CheckpointRecord& /*record*/) { return OkStatus(); }

 private:
  TensorBoardFile(const std::string& path, std::FILE* file) : path_(path), file_(file) {}
  Status Write(tensorboard::Event event);

  const std::string path_;
  std::FILE* const file_;  // owned
};

// Returns the checksum of TFRecords: the CRC-32C rotated by 15 bits, plus a constant.
uint32_t MaskedCrc32c(const std::string& bytes);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_TENSORBOARD_H_
