#include <utility>

#include "embedding/sharded_embedding.h"
#include "trainer/experiment/run_setup.h"
#include "trainer/run/step_parts.h"
#include "trainer/step/train_step.h"

namespace elastor {
namespace {

class CpuParts final : public StepParts {
 public:
  explicit CpuParts(const StepRequest& request)
      : embedding_(MakeEmbeddingOptions(request.experiment, *request.data), request.plan,
                   request.communicator, request.pool),
        step_(MakeTrainStepOptions(request.experiment, *request.data), request.model, &embedding_,
              request.communicator, request.pool) {}

  EmbeddingState<float>* embedding() override { return &embedding_; }
  Step<float>* step() override { return &step_; }
  PhaseRecord device_record(Phase) override { return {}; }

 private:
  ShardedEmbedding<float> embedding_;
  TrainStep<float> step_;
};

}  // namespace

StatusOr<std::unique_ptr<StepParts>> MakeCpuParts(const StepRequest& request) {
  const Experiment& experiment = request.experiment;
  if (!experiment.parallel().reproducible()) {
    return UserError(
        "parallel.reproducible: false is a choice on GPUs (--device=cuda); expected true");
  }
  if (experiment.training().precision() != TrainingConfig_Precision_FLOAT32) {
    return UserError(
        "training.precision: " + TrainingConfig_Precision_Name(experiment.training().precision()) +
        " is a choice on GPUs (--device=cuda); expected FLOAT32");
  }
  return std::unique_ptr<StepParts>(std::make_unique<CpuParts>(request));
}

}  // namespace elastor
