#include "trainer/run/inference.h"

#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/numerics.h"
#include "core/process/standard_streams.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/evaluate/predictions_file.h"
#include "trainer/experiment/config.h"
#include "trainer/records/run_files.h"

namespace elastor {

std::string PredictionsPath(const RunOptions& options) {
  return options.output_dir + "/" + kPredictionsFile;
}

StatusOr<EvalRecord> MeasureAndPredict(const RunOptions& options, RunContext* context) {
  const Task& task = context->model.task;
  return WithRowsFile<EvalRecord>(
      PredictionsPath(options), PredictionsHeader(task, options.logit), context,
      [&](RowsFile* file) {
        return context->Evaluate(
            options.split, [&](int64_t first_row, const std::vector<float>& labels,
                               const std::vector<float>& logits) {
              return file->Append(PredictionLines(task, options.logit, first_row, labels, logits));
            });
      });
}

Status CheckPredictions(const std::string& flag, const RunContext& context) {
  if (context.dataset->info().classes == 0) return OkStatus();
  return UserError(flag + ": the data's labels are classes; expected 0 or 1");
}

Status CheckModelFlag(const std::string& model_dir) {
  std::error_code ignored;
  const auto holds_model = [&](const std::string& path) {
    return std::filesystem::exists(path + "/manifest.json", ignored);
  };
  if (holds_model(model_dir) || !holds_model(model_dir + "/model")) return OkStatus();
  return UserError("--model=" + model_dir + ": is a run's folder; expected the model in it, " +
                   model_dir + "/model");
}

namespace {

// The step that a folder's weights are of: of the best evaluation in the model of a run with
// training.monitor.best_weights.
int64_t StepOfWeights(const CheckpointMetadata& metadata) {
  const ControlRecord& control = metadata.control;
  if (metadata.contents == Contents::kState || !control.has_best()) return control.step();
  const StatusOr<Experiment> trained = ParseExperiment(metadata.experiment, "experiment");
  const bool best = trained.ok() && trained->training().monitor().best_weights();
  return best ? control.best_step() : control.step();
}

// Writes a table from rank 0.
Status WriteTable(const RunOptions& options, const Measured& measured, RunContext* context) {
  if (context->communicator->rank() != 0 || measured.text.empty()) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(context->log->CheckInPlace());
  if (!measured.csv_name.empty()) {
    ELASTOR_RETURN_IF_ERROR(
        WriteFileAtomically(options.output_dir + "/" + measured.csv_name, measured.csv));
  }
  return WriteToStdout(measured.text);
}

}  // namespace

Status RunInference(const RunOptions& options, const InferenceMode& mode,
                    Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RunContext> context,
                           RunContext::Open(options, /*steps_done=*/0, &communicator));
  if (mode.check) ELASTOR_RETURN_IF_ERROR(mode.check(options, *context));
  CheckpointMetadata metadata;
  if (!options.model_dir.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(
        metadata, LoadCheckpoint(options.model_dir, Contents::kWeights, context->Identity(),
                                 context->State(), communicator));
    context->step().WeightsChanged();
  }

  const double loaded = SecondsSince(context->start);
  const int64_t step = StepOfWeights(metadata);
  communicator.Enter(Activity::kEvaluate);
  ELASTOR_ASSIGN_OR_RETURN(Measured measured, mode.measure(options, step, context.get()));
  const bool evaluated = !measured.evaluated.split.empty();
  if (evaluated) measured.rows = measured.evaluated.rows;
  measured.evaluated.step = step;
  ELASTOR_RETURN_IF_ERROR(context->BeginLog());
  Status written = evaluated ? context->log->Append(measured.evaluated) : OkStatus();
  if (mode.write && written.ok()) written = mode.write(options, measured, step, context.get());
  if (written.ok()) written = WriteTable(options, measured, context.get());
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, written));
  ELASTOR_ASSIGN_OR_RETURN(Summary summary, context->MakeSummary());
  if (!options.model_dir.empty() && communicator.rank() == 0 &&
      WithoutMachine(metadata.numerics) != WithoutMachine(summary.numerics)) {
    LOG(WARNING) << options.model_dir << ": trained under the numerics '" << metadata.numerics
                 << "'; here they are '" << summary.numerics << "': bits may differ";
  }
  summary.mode = options.mode;
  summary.model = options.model_dir;
  summary.predictions = measured.predictions;
  if (evaluated) context->AddEvaluation(measured.evaluated, &summary);
  summary.split = SplitName(options.split);
  summary.rows = measured.rows;
  summary.spectrum = measured.spectrum;
  summary.steps = step;
  summary.epochs = metadata.control.epoch();
  summary.samples_per_s = static_cast<double>(measured.rows) / (summary.wall_s - loaded);
  summary.state_digest = metadata.state_digest;
  return AgreeOnStatus(communicator, context->log->Finish(summary));
}

}  // namespace elastor
