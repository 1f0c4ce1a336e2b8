#ifndef ELASTOR_TRAINER_RUN_INFERENCE_H_
#define ELASTOR_TRAINER_RUN_INFERENCE_H_

#include <string>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/run/run_context.h"

namespace elastor {

// Measures a trained model on a split, on any number of ranks: the metrics, or spectra, to the last
// bit, that the training run would have measured there. Modes evaluate; predict, which also writes
// predictions.csv; spectra, the effective ranks of all rows instead of metrics, with the files of
// evaluate/spectra_files.h; projection, projections.csv; theory, theory.csv of spectrum.samples
// rows, at the initial and at the model's weights. output_dir is filled when all is measured: a
// command that fails before leaves nothing there. Collective.
Status RunInference(const RunOptions& options, Communicator& communicator);

// The metrics of options.split; every row's prediction goes to PredictionsPath meanwhile.
// Collective.
StatusOr<EvalRecord> MeasureAndPredict(const RunOptions& options, RunContext* context);
std::string PredictionsPath(const RunOptions& options);  // output_dir/predictions.csv

// What is wrong with --model before any file of it is read: a run's folder in the place of a
// model's.
Status CheckModelFlag(const std::string& model_dir);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_INFERENCE_H_
