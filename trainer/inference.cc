#include "trainer/inference.h"

#include <memory>
#include <vector>

#include "glog/logging.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/evaluation.h"
#include "trainer/predictions_file.h"
#include "trainer/run_parts.h"

namespace elastor {
namespace {

constexpr char kPredictionsFile[] = "predictions.csv";

struct Measured {
  MetricValues metrics;                  // of no rows when spectra were asked for
  std::vector<SpectrumRecord> spectrum;  // else empty
  int64_t rows = 0;
};

// With `predict`, writes every row's prediction meanwhile.
StatusOr<MetricValues> MeasureMetrics(const InferenceOptions& options, RunParts* parts) {
  if (!options.predict) return parts->evaluation().Measure(options.split, {});
  ELASTOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionsFile> predictions,
      PredictionsFile::Open(options.output_dir + "/" + kPredictionsFile, parts->communicator));
  ELASTOR_ASSIGN_OR_RETURN(
      const MetricValues metrics,
      parts->evaluation().Measure(options.split,
                                  [&](int64_t first_row, const std::vector<float>& labels,
                                      const std::vector<float>& logits) {
                                    return predictions->Append(first_row, labels, logits);
                                  }));
  ELASTOR_RETURN_IF_ERROR(predictions->Commit());
  return metrics;
}

// What was asked for; its records, of a model of `step` steps, go to the log.
StatusOr<Measured> Measure(const InferenceOptions& options, int64_t step, RunParts* parts) {
  Measured measured;
  Status logged;
  if (options.spectra) {
    ELASTOR_ASSIGN_OR_RETURN(measured.spectrum,
                             parts->evaluation().MeasureSpectrum(
                                 options.split, options.experiment.spectrum().samples()));
    measured.rows = measured.spectrum[0].samples;
    for (SpectrumRecord& record : measured.spectrum) {
      record.step = step;
      if (logged.ok()) logged = parts->log->Append(record);
    }
  } else {
    ELASTOR_ASSIGN_OR_RETURN(measured.metrics, MeasureMetrics(options, parts));
    measured.rows = measured.metrics.rows;
    logged = parts->log->Append(
        EvalRecord{.split = SplitName(options.split), .step = step, .metrics = measured.metrics});
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*parts->communicator, logged));
  return measured;
}

}  // namespace

Status RunInference(const InferenceOptions& options, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RunParts> parts,
                           RunParts::Open({.experiment = options.experiment,
                                           .output_dir = options.output_dir,
                                           .purpose = RunParts::Purpose::kInfer,
                                           .split = options.split,
                                           .device = options.device,
                                           .numerics = options.numerics},
                                          &communicator));
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointFacts facts,
                           LoadCheckpoint(options.model_dir, Contents::kWeights, parts->Identity(),
                                          parts->State(), communicator));
  parts->step().WeightsChanged();

  const double loaded = SecondsSince(parts->start);
  ELASTOR_ASSIGN_OR_RETURN(const Measured measured,
                           Measure(options, facts.control.step(), parts.get()));
  ELASTOR_ASSIGN_OR_RETURN(Summary summary, parts->MakeSummary());
  if (facts.numerics != summary.numerics && communicator.rank() == 0) {
    LOG(WARNING) << options.model_dir << ": trained under the numerics '" << facts.numerics
                 << "'; here they are '" << summary.numerics << "': bits may differ";
  }
  summary.split = SplitName(options.split);
  summary.spectrum = measured.spectrum;
  summary.auc = measured.metrics.auc;
  summary.gauc = measured.metrics.gauc;
  if (!options.spectra) summary.logloss = measured.metrics.logloss;
  summary.steps = facts.control.step();
  summary.epochs = facts.control.epoch();
  summary.samples_per_s = static_cast<double>(measured.rows) / (summary.wall_s - loaded);
  summary.state_digest = facts.state_digest;
  return AgreeOnStatus(communicator, parts->log->Finish(summary));
}

}  // namespace elastor
