#include "trainer/inference.h"

#include <memory>
#include <vector>

#include "glog/logging.h"
#include "trainer/evaluation.h"
#include "trainer/model_files.h"
#include "trainer/predictions_file.h"
#include "trainer/run_parts.h"

namespace elastor {
namespace {

constexpr char kPredictionsFile[] = "predictions.csv";

// Measures the split; with `predict`, writes every row's prediction meanwhile.
StatusOr<MetricValues> Measure(const InferenceOptions& options, RunParts* parts) {
  if (!options.predict) return parts->evaluation.Measure(options.split, {});
  ELASTOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionsFile> predictions,
      PredictionsFile::Open(options.output_dir + "/" + kPredictionsFile, parts->communicator));
  ELASTOR_ASSIGN_OR_RETURN(
      const MetricValues metrics,
      parts->evaluation.Measure(options.split,
                                [&](int64_t first_row, const std::vector<float>& labels,
                                    const std::vector<float>& logits) {
                                  return predictions->Append(first_row, labels, logits);
                                }));
  ELASTOR_RETURN_IF_ERROR(predictions->Commit());
  return metrics;
}

}  // namespace

Status RunInference(const InferenceOptions& options, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RunParts> parts,
                           RunParts::Open({.experiment = options.experiment,
                                           .output_dir = options.output_dir,
                                           .purpose = RunParts::Purpose::kInfer,
                                           .split = options.split},
                                          &communicator));
  ELASTOR_ASSIGN_OR_RETURN(const ModelFacts facts, LoadModel(options.model_dir, parts->ModelHash(),
                                                             parts->Weights(), communicator));
  parts->step.WeightsChanged();

  const double loaded = parts->SecondsSinceStart();
  ELASTOR_ASSIGN_OR_RETURN(const MetricValues metrics, Measure(options, parts.get()));
  ELASTOR_ASSIGN_OR_RETURN(Summary summary, parts->MakeSummary());
  if (facts.numerics != summary.numerics && communicator.rank() == 0) {
    LOG(WARNING) << options.model_dir << ": trained under the numerics '" << facts.numerics
                 << "'; here they are '" << summary.numerics << "': bits may differ";
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(
      communicator, parts->log->Append(EvalRecord{SplitName(options.split), facts.step, metrics})));
  summary.split = SplitName(options.split);
  summary.auc = metrics.auc;
  summary.logloss = metrics.logloss;
  summary.steps = facts.step;
  summary.epochs = facts.epochs;
  summary.samples_per_s = static_cast<double>(metrics.rows) / (summary.wall_s - loaded);
  summary.state_digest = facts.state_digest;
  return AgreeOnStatus(communicator, parts->log->Finish(summary));
}

}  // namespace elastor
