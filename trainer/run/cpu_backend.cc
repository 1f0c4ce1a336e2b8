#include <memory>
#include <string>
#include <utility>

#include "core/base/exhausted.h"
#include "core/base/text.h"
#include "core/kernels/cpu/isa.h"
#include "embedding/row_tier.h"
#include "embedding/sharded_embedding.h"
#include "trainer/experiment/make_options.h"
#include "trainer/run/backend.h"
#include "trainer/step/train_step.h"

namespace elastor {
namespace {

class CpuBackend final : public Backend {
 public:
  // tier: of the tables; null if there is none.
  CpuBackend(const BackendOptions& options, std::unique_ptr<RowTier> tier)
      : tier_(std::move(tier)),
        embedding_(OptionsOf(options, tier_.get()), options.plan, options.communicator,
                   options.pool),
        step_(MakeTrainStepOptions(options.experiment, *options.data), options.graph, &embedding_,
              options.communicator, options.pool) {}

  EmbeddingState<float>* embedding() override { return &embedding_; }
  ShardedEmbedding<float>* host_embedding() override { return &embedding_; }
  Step<float>* step() override { return &step_; }
  IdStaging id_staging() override { return nullptr; }
  PhaseRecord device_record(Phase, Work) override { return {}; }

 private:
  static EmbeddingOptions OptionsOf(const BackendOptions& options, RowTier* tier) {
    EmbeddingOptions embedding = MakeEmbeddingOptions(options.experiment, *options.data);
    embedding.tier = tier;
    if (options.experiment.parallel().by_host()) embedding.hosts = options.hosts;
    return embedding;
  }

  const std::unique_ptr<RowTier> tier_;
  ShardedEmbedding<float> embedding_;
  TrainStep<float> step_;
};

}  // namespace

StatusOr<std::string> OpenCpu(const Experiment& experiment, Communicator& communicator) {
  switch (PrecisionOf(experiment.training())) {
    case Precision::kFloat32:
      return std::string("cpu");
    case Precision::kTf32:
      return UserError(
          "training.precision: TF32 is a choice on GPUs (--device=cuda); expected FLOAT32, or "
          "BFLOAT16 on a CPU with AVX512-BF16");
    case Precision::kBFloat16:
      break;
  }
  const Status here =
      CpuHasBFloat16()
          ? OkStatus()
          : UserError(StrCat(
                "training.precision: BFLOAT16 on the CPU needs AVX512-BF16 (AMD Zen 4, Intel "
                "Cooper Lake or newer), which rank ",
                communicator.rank(),
                "'s host lacks, or ELASTOR_ISA=v3 rules out; expected FLOAT32"));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, here));
  return std::string("cpu vdpbf16ps");
}

StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options) {
  const Experiment& experiment = options.experiment;
  if (!experiment.parallel().reproducible()) {
    return UserError(
        "parallel.reproducible: false is a choice on GPUs (--device=cuda); expected true");
  }
  std::unique_ptr<RowTier> tier;
  if (const TierConfig& config = experiment.embedding().tier(); !config.path().empty()) {
    StatusOr<std::unique_ptr<RowTier>> opened =
        RowTier::Open({.path = config.path(), .memory_bytes = config.memory_bytes()});
    ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*options.communicator, opened.status()));
    tier = std::move(opened).value();
  }
  const MemoryPurpose purpose("dense weights, gradients and optimizer slots");
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(options, std::move(tier)));
}

}  // namespace elastor
