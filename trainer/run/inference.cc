#include "trainer/run/inference.h"

#include <filesystem>
#include <memory>
#include <vector>

#include "glog/logging.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/evaluate/evaluation.h"
#include "trainer/evaluate/predictions_file.h"

namespace elastor {
namespace {

std::string PredictionsPath(const RunOptions& options) {
  return options.output_dir + "/predictions.csv";
}

const char* ModeName(Mode mode) {
  if (mode == Mode::kPredict) return "predict";
  return mode == Mode::kSpectra ? "spectra" : "evaluate";
}

struct Measured {
  EvalRecord evaluated;                  // without a split when spectra were asked for
  std::vector<SpectrumRecord> spectrum;  // else empty
  int64_t rows = 0;
};

// In mode predict, writes every row's prediction meanwhile.
StatusOr<EvalRecord> MeasureMetrics(const RunOptions& options, RunContext* context) {
  if (options.mode != Mode::kPredict) return context->Evaluate(options.split, {});
  ELASTOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionsFile> predictions,
      PredictionsFile::Open(PredictionsPath(options), context->task, context->communicator));
  ELASTOR_ASSIGN_OR_RETURN(
      const EvalRecord evaluated,
      context->Evaluate(options.split, [&](int64_t first_row, const std::vector<float>& labels,
                                           const std::vector<float>& logits) {
        return predictions->Append(first_row, labels, logits);
      }));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context->communicator, context->log->CheckInPlace()));
  ELASTOR_RETURN_IF_ERROR(predictions->Commit());
  return evaluated;
}

// What was asked for; its records, of a model of `step` steps, begin the log.
StatusOr<Measured> Measure(const RunOptions& options, int64_t step, RunContext* context) {
  Measured measured;
  Status logged;
  if (options.mode == Mode::kSpectra) {
    ELASTOR_ASSIGN_OR_RETURN(measured.spectrum,
                             context->evaluation().MeasureSpectrum(
                                 options.split, options.experiment.spectrum().samples()));
    measured.rows = measured.spectrum[0].samples;
    ELASTOR_RETURN_IF_ERROR(context->BeginLog());
    for (SpectrumRecord& record : measured.spectrum) {
      record.step = step;
      if (logged.ok()) logged = context->log->Append(record);
    }
  } else {
    ELASTOR_ASSIGN_OR_RETURN(measured.evaluated, MeasureMetrics(options, context));
    measured.evaluated.step = step;
    measured.rows = measured.evaluated.rows;
    ELASTOR_RETURN_IF_ERROR(context->BeginLog());
    logged = context->log->Append(measured.evaluated);
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context->communicator, logged));
  return measured;
}

}  // namespace

Status CheckModelFlag(const std::string& model_dir) {
  std::error_code ignored;
  const auto holds_model = [&](const std::string& path) {
    return std::filesystem::exists(path + "/manifest.json", ignored);
  };
  if (holds_model(model_dir) || !holds_model(model_dir + "/model")) return OkStatus();
  return UserError("--model=" + model_dir + ": is a run's folder; expected the model in it, " +
                   model_dir + "/model");
}

Status RunInference(const RunOptions& options, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RunContext> context,
                           RunContext::Open(options, /*steps_done=*/0, &communicator));
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                           LoadCheckpoint(options.model_dir, Contents::kWeights,
                                          context->Identity(), context->State(), communicator));
  context->step().WeightsChanged();

  const double loaded = SecondsSince(context->start);
  ELASTOR_ASSIGN_OR_RETURN(const Measured measured,
                           Measure(options, metadata.control.step(), context.get()));
  ELASTOR_ASSIGN_OR_RETURN(Summary summary, context->MakeSummary());
  if (metadata.numerics != summary.numerics && communicator.rank() == 0) {
    LOG(WARNING) << options.model_dir << ": trained under the numerics '" << metadata.numerics
                 << "'; here they are '" << summary.numerics << "': bits may differ";
  }
  summary.mode = ModeName(options.mode);
  summary.model = options.model_dir;
  if (options.mode == Mode::kPredict) summary.predictions = PredictionsPath(options);
  if (options.mode != Mode::kSpectra) context->AddEvaluation(measured.evaluated, &summary);
  summary.split = SplitName(options.split);
  summary.rows = measured.rows;
  summary.spectrum = measured.spectrum;
  summary.steps = metadata.control.step();
  summary.epochs = metadata.control.epoch();
  summary.samples_per_s = static_cast<double>(measured.rows) / (summary.wall_s - loaded);
  summary.state_digest = metadata.state_digest;
  return AgreeOnStatus(communicator, context->log->Finish(summary));
}

}  // namespace elastor
