#ifndef ELASTOR_TRAINER_RUN_INFERENCE_H_
#define ELASTOR_TRAINER_RUN_INFERENCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/evaluate/rows_file.h"
#include "trainer/records/spectrum_record.h"
#include "trainer/run/run_context.h"

namespace elastor {

// Results of a mode on a split.
struct Measured {
  EvalRecord evaluated;                  // its split is empty if no metrics were measured
  std::vector<SpectrumRecord> spectrum;  // or empty
  int64_t rows = 0;         // number of the split's rows that were measured; 0: all evaluated rows
  std::string predictions;  // path of the file of predictions; empty: none
  // A table for people, which rank 0 writes: a CSV file's name in output_dir, or empty, its bytes,
  // and text for stdout.
  std::string csv_name, csv, text;
};

// The part of an inference that differs from mode to mode. All functions are collective.
struct InferenceMode {
  // Refuses what the mode cannot measure, once the data set is open. May be empty.
  std::function<Status(const RunOptions&, const RunContext&)> check = {};
  // Measures the model of `step` steps that the context holds.
  std::function<StatusOr<Measured>(const RunOptions&, int64_t step, RunContext*)> measure = {};
  // Writes the results other than Measured's record of an evaluation and its table: files into
  // output_dir, records into the log. May be empty. Its error may be this rank's alone.
  std::function<Status(const RunOptions&, const Measured&, int64_t step, RunContext*)> write = {};
};

// Loads a trained model and measures it on options.split, on any number of ranks. With an empty
// options.model_dir keeps the initial weights. The results equal, to the last bit, those that the
// training run would have measured. output_dir is filled once everything is measured, so a command
// that fails earlier leaves nothing there. Killed while it fills the folder, the same command takes
// it up. Collective.
Status RunInference(const RunOptions& options, const InferenceMode& mode,
                    Communicator& communicator);

// Fills a RowsFile while `measure`, which appends to it, measures rows. Publishes the file on
// success. Collective.
template <typename T>
StatusOr<T> WithRowsFile(const std::string& path, const std::string& header, RunContext* context,
                         const std::function<StatusOr<T>(RowsFile*)>& measure) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RowsFile> file,
                           RowsFile::Open(path, header, context->communicator));
  ELASTOR_ASSIGN_OR_RETURN(T measured, measure(file.get()));
  Status ready = context->log->CheckInPlace();
  if (ready.ok()) ready = context->log->BeginFilling();
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context->communicator, ready));
  ELASTOR_RETURN_IF_ERROR(file->Commit());
  return measured;
}

// Measures the metrics of options.split and writes every row's prediction to PredictionsPath.
// Collective.
StatusOr<EvalRecord> MeasureAndPredict(const RunOptions& options, RunContext* context);
std::string PredictionsPath(const RunOptions& options);  // output_dir/predictions.csv
// User error, which names `flag`, if there is no such file of the data's labels.
Status CheckPredictions(const std::string& flag, const RunContext& context);

// Checks --model before any of its files is read. User error when it is a run's folder instead of a
// model's.
Status CheckModelFlag(const std::string& model_dir);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_INFERENCE_H_
