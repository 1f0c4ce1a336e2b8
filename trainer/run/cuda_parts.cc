// The GPU's half of the trainer (trainer/run/step_parts.h).
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/device_embedding.h"
#include "trainer/experiment/run_setup.h"
#include "trainer/run/step_parts.h"
#include "trainer/step/cuda/device_train_step.h"

namespace elastor {
namespace {

using cuda::DeviceCommunicator;
using cuda::DeviceEmbedding;
using cuda::DeviceInfo;
using cuda::DeviceStepOptions;
using cuda::DeviceTrainStep;
using cuda::Precision;

// The class of device kernels: the orders of sums that their headers state, S places a leaf. Change
// it when one of them changes.
constexpr char kKernels[] = "places1";

// This rank's number among the ranks of its host.
StatusOr<int> LocalRank(Communicator& communicator) {
  constexpr int64_t kNameBytes = 256;
  std::array<char, kNameBytes> own{};
  gethostname(own.data(), kNameBytes - 1);
  std::vector<char> names(kNameBytes * communicator.size());
  const std::vector<int64_t> bytes(communicator.size(), kNameBytes);
  ELASTOR_RETURN_IF_ERROR(communicator.AllGatherV(Phase::kSetup, own.data(), names.data(), bytes));
  int local = 0;
  for (int r = 0; r < communicator.rank(); ++r) {
    if (std::strcmp(names.data() + r * kNameBytes, own.data()) == 0) ++local;
  }
  return local;
}

StatusOr<DeviceInfo> OpenLocalDevice(int local_rank) {
  const int devices = cuda::DeviceCount();
  return cuda::OpenDevice(devices > 0 ? local_rank % devices : 0);
}

DeviceEmbedding::Options DeviceOptions(const StepRequest& request) {
  return {MakeEmbeddingOptions(request.experiment, *request.data),
          request.experiment.parallel().device_embedding_bytes()};
}

Precision PrecisionOf(const Experiment& experiment) {
  switch (experiment.training().precision()) {
    case TrainingConfig_Precision_TF32:
      return Precision::kTf32;
    case TrainingConfig_Precision_BFLOAT16:
      return Precision::kBFloat16;
    default:
      return Precision::kFloat32;
  }
}

template <typename A>
class CudaParts final : public StepParts {
 public:
  CudaParts(const StepRequest& request, std::unique_ptr<DeviceCommunicator> communicator)
      : communicator_(std::move(communicator)),
        embedding_(DeviceOptions(request), request.plan, communicator_.get(), &streams_.compute,
                   &streams_.route, request.pool),
        step_(MakeTrainStepOptions(request.experiment, *request.data),
              DeviceStepOptions{.precision = PrecisionOf(request.experiment),
                                .reproducible = request.experiment.parallel().reproducible(),
                                .evaluation_rows = request.experiment.training().eval_batch_size()},
              MakeModelSpec(request.experiment, *request.data), request.model, &embedding_,
              communicator_.get(), &streams_, request.pool) {}

  EmbeddingState<float>* embedding() override { return &embedding_; }
  Step<float>* step() override { return &step_; }
  PhaseRecord device_record(Phase phase) override { return communicator_->record(phase); }

 private:
  cuda::StepStreams streams_;
  std::unique_ptr<DeviceCommunicator> communicator_;
  DeviceEmbedding embedding_;
  DeviceTrainStep<A> step_;
};

}  // namespace

StatusOr<std::string> OpenCudaDevice(Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const int local_rank, LocalRank(communicator));
  const StatusOr<DeviceInfo> info = OpenLocalDevice(local_rank);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, info.status()));
  return std::string("cuda ") + kKernels + " " + info->name + " " + info->libraries;
}

StatusOr<std::unique_ptr<StepParts>> MakeCudaParts(const StepRequest& request) {
  ELASTOR_ASSIGN_OR_RETURN(
      std::unique_ptr<DeviceCommunicator> communicator,
      cuda::MakeDeviceCommunicator(request.communicator,
                                   request.experiment.parallel().deadline_seconds()));
  if (PrecisionOf(request.experiment) == Precision::kBFloat16) {
    return std::unique_ptr<StepParts>(
        std::make_unique<CudaParts<cuda::BFloat16>>(request, std::move(communicator)));
  }
  return std::unique_ptr<StepParts>(
      std::make_unique<CudaParts<float>>(request, std::move(communicator)));
}

}  // namespace elastor
