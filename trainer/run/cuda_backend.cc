// The GPU's half of the trainer (trainer/run/backend.h).
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "core/base/text.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/device_embedding.h"
#include "embedding/table.h"
#include "trainer/experiment/make_options.h"
#include "trainer/run/backend.h"
#include "trainer/step/cuda/device_train_step.h"

namespace elastor {
namespace {

using cuda::DeviceCommunicator;
using cuda::DeviceEmbedding;
using cuda::DeviceInfo;
using cuda::DeviceStepOptions;
using cuda::DeviceTrainStep;

// The class of device kernels: the orders of sums that their headers state, S places a leaf. Change
// it when one of them changes.
constexpr char kKernels[] = "places3";

int64_t opened_bytes = 0;  // of the device that was opened

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

DeviceEmbedding::Options DeviceOptions(const BackendOptions& options) {
  return {MakeEmbeddingOptions(options.experiment, *options.data),
          options.experiment.parallel().device_embedding_bytes()};
}

template <typename A>
class CudaBackend final : public Backend {
 public:
  CudaBackend(const BackendOptions& options, std::unique_ptr<DeviceCommunicator> communicator)
      : communicator_(std::move(communicator)),
        embedding_(DeviceOptions(options), options.plan, communicator_.get(), &streams_.compute,
                   &streams_.route, options.pool),
        step_(MakeTrainStepOptions(options.experiment, *options.data),
              DeviceStepOptions{.reproducible = options.experiment.parallel().reproducible(),
                                .fused_network = options.fused_network,
                                .evaluation_rows = options.experiment.training().eval_batch_size()},
              options.graph, &embedding_, communicator_.get(), &streams_, options.pool) {}

  EmbeddingState<float>* embedding() override { return &embedding_; }
  ShardedEmbedding<float>* host_embedding() override { return nullptr; }
  Step<float>* step() override { return &step_; }
  IdStaging id_staging() override {
    return [this](const SparseBatch& batch, std::unique_ptr<StagedIds> memory) {
      return embedding_.StageIds(batch, std::move(memory));
    };
  }
  PhaseRecord device_record(Phase phase, Work work) override {
    return communicator_->record(phase, work);
  }

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
  opened_bytes = info->memory_bytes;
  return StrCat("cuda ", kKernels, " ", info->name, " ", info->libraries);
}

int64_t CudaDeviceBytes() { return opened_bytes; }

StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions& options) {
  const WireFormats wire = MakeWireFormats(options.experiment.parallel());
  if (wire.rows != WireFormat::kFloat32 || wire.gradients != WireFormat::kFloat32) {
    return UserError("parallel.wire: 16 bits are a choice on CPUs; expected FLOAT32");
  }
  if (options.experiment.parallel().by_host()) {
    return UserError("parallel.by_host: true is a choice on CPUs; expected false");
  }
  ELASTOR_ASSIGN_OR_RETURN(
      std::unique_ptr<DeviceCommunicator> communicator,
      cuda::MakeDeviceCommunicator(options.communicator,
                                   options.experiment.parallel().deadline_seconds()));
  if (PrecisionOf(options.experiment.training()) == Precision::kBFloat16) {
    return std::unique_ptr<Backend>(
        std::make_unique<CudaBackend<cuda::BFloat16>>(options, std::move(communicator)));
  }
  return std::unique_ptr<Backend>(
      std::make_unique<CudaBackend<float>>(options, std::move(communicator)));
}

}  // namespace elastor
