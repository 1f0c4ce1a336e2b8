#ifndef ELASTOR_TESTS_TRAINER_STEP_CUDA_DEVICE_TRAINING_H_
#define ELASTOR_TESTS_TRAINER_STEP_CUDA_DEVICE_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "collective/communicator.h"
#include "tests/trainer/step/tiny_training.h"
#include "trainer/step/cuda/device_train_step.h"

namespace elastor::cuda {

// A tiny training on the device, ranks exchanging through the host. device_bytes: of embeddings (0:
// all on the device). exchange: is told of every call of a rank's device communicator, by the
// rank's thread.
struct DeviceChoice {
  Precision precision = Precision::kFloat32;
  bool reproducible = true;
  int64_t device_bytes = 0;
  std::function<void(int rank, Phase phase)> exchange = nullptr;
};
std::function<std::unique_ptr<TinyParts>(const TinySetup&)> OnDevice(const DeviceChoice& choice);

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_TRAINER_STEP_CUDA_DEVICE_TRAINING_H_
