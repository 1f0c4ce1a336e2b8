#include <utility>

#include "core/base/exhausted.h"
#include "embedding/sharded_embedding.h"
#include "trainer/experiment/make_options.h"
#include "trainer/run/backend.h"
#include "trainer/step/train_step.h"

namespace elastor {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options)
      : embedding_(MakeEmbeddingOptions(options.experiment, *options.data), options.plan,
                   options.communicator, options.pool),
        step_(MakeTrainStepOptions(options.experiment, *options.data), options.graph, &embedding_,
              options.communicator, options.pool) {}

  EmbeddingState<float>* embedding() override { return &embedding_; }
  Step<float>* step() override { return &step_; }
  PhaseRecord device_record(Phase) override { return {}; }

 private:
  ShardedEmbedding<float> embedding_;
  TrainStep<float> step_;
};

}  // namespace

StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options) {
  const Experiment& experiment = options.experiment;
  if (!experiment.parallel().reproducible()) {
    return UserError(
        "parallel.reproducible: false is a choice on GPUs (--device=cuda); expected true");
  }
  if (experiment.training().precision() != TrainingConfig_Precision_FLOAT32) {
    return UserError(
        "training.precision: " + TrainingConfig_Precision_Name(experiment.training().precision()) +
        " is a choice on GPUs (--device=cuda); expected FLOAT32");
  }
  const MemoryPurpose purpose("dense weights, gradients and optimizer slots");
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(options));
}

}  // namespace elastor
