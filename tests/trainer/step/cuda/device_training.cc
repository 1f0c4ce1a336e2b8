#include "tests/trainer/step/cuda/device_training.h"

#include <utility>

#include "collective/cuda/device_communicator.h"
#include "core/cuda/bfloat16.h"
#include "embedding/cuda/device_embedding.h"

namespace elastor::cuda {
namespace {

TrainStepOptions InPrecision(Precision precision, TrainStepOptions options) {
  options.precision = precision;
  return options;
}

// Tells of every call, then makes it.
class ToldCommunicator final : public DeviceCommunicator {
 public:
  ToldCommunicator(Communicator* host, std::function<void(int rank, Phase phase)> tell)
      : DeviceCommunicator(host), tell_(std::move(tell)), to_(MakeHostDeviceCommunicator(host)) {}

  Status AllToAllV(Phase phase, Stream& stream, const void* send,
                   std::span<const int64_t> send_bytes, void* receive,
                   std::span<const int64_t> receive_bytes) override {
    tell_(rank(), phase);
    return to_->AllToAllV(phase, stream, send, send_bytes, receive, receive_bytes);
  }
  Status AllGatherV(Phase phase, Stream& stream, const void* send, void* receive,
                    std::span<const int64_t> bytes) override {
    tell_(rank(), phase);
    return to_->AllGatherV(phase, stream, send, receive, bytes);
  }
  Status AllReduceSum(Phase phase, Stream& stream, int64_t* values, int64_t count) override {
    tell_(rank(), phase);
    return to_->AllReduceSum(phase, stream, values, count);
  }
  Status AllReduceSum(Phase phase, Stream& stream, float* values, int64_t count) override {
    tell_(rank(), phase);
    return to_->AllReduceSum(phase, stream, values, count);
  }
  Status Wait(const Event& event, const char* what) override { return to_->Wait(event, what); }
  PhaseRecord record(Phase phase, Work work) override { return to_->record(phase, work); }
  const char* name() const override { return to_->name(); }

 private:
  std::function<void(int rank, Phase phase)> tell_;
  std::unique_ptr<DeviceCommunicator> to_;
};

std::unique_ptr<DeviceCommunicator> MakeCommunicator(Communicator* host,
                                                     const DeviceChoice& choice) {
  if (choice.exchange == nullptr) return MakeHostDeviceCommunicator(host);
  return std::make_unique<ToldCommunicator>(host, choice.exchange);
}

template <typename A>
class DeviceParts final : public TinyParts {
 public:
  DeviceParts(const TinySetup& setup, const DeviceChoice& choice)
      : communicator_(MakeCommunicator(setup.communicator, choice)),
        embedding_({setup.embedding, choice.device_bytes}, setup.plan, communicator_.get(),
                   &streams_.compute, &streams_.route, setup.pool),
        step_(InPrecision(choice.precision, setup.step),
              DeviceStepOptions{.reproducible = choice.reproducible,
                                .evaluation_rows = setup.evaluated_rows},
              setup.graph, &embedding_, communicator_.get(), &streams_, setup.pool) {}

  EmbeddingState<float>* embedding() override { return &embedding_; }
  Step<float>* step() override { return &step_; }

 private:
  StepStreams streams_;
  std::unique_ptr<DeviceCommunicator> communicator_;
  DeviceEmbedding embedding_;
  DeviceTrainStep<A> step_;
};

}  // namespace

std::function<std::unique_ptr<TinyParts>(const TinySetup&)> OnDevice(const DeviceChoice& choice) {
  return [choice](const TinySetup& setup) -> std::unique_ptr<TinyParts> {
    if (choice.precision == Precision::kBFloat16) {
      return std::make_unique<DeviceParts<BFloat16>>(setup, choice);
    }
    return std::make_unique<DeviceParts<float>>(setup, choice);
  };
}

}  // namespace elastor::cuda
